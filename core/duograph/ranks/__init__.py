"""Ranks: the processes or threads that run one program together, and the collectives among them.

`world` knows the ranks and which of them this thread is. `transfers` composes collectives of the
transfers that a communication engine offers. `operations` runs them one after the other, with
deadlines and with a check that all ranks call the same collective. Engines are plugins
(`backend.collectives`); no module here may name one.
"""
