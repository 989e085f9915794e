"""Ranks: who takes part in a program, and the collectives that they run together.

`world` answers which ranks there are and which one this thread is. `transfers` composes collectives
of what engines move. `operations` runs them one after the other, with deadlines and with a check
that all ranks call the same. Engines are plugins (`backend.collectives`); nothing here names one.
"""
