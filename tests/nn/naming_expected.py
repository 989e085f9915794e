"""Names of Parameters that MindSpore 2.10 printed for `naming_programs.py`."""

# program -> (path, name) of each Parameter, or the name of the error
# fmt: off
EXPECTED: dict[str, list[tuple[str, str]] | str] = {
    'sequential': [
        ('0.weight', '0.weight'), ('0.bias', '0.bias'), ('2.weight', '2.weight'), ('2.bias',
        '2.bias')
    ],
    'sequential_of_a_list': [
        ('0.weight', '0.weight'), ('0.bias', '0.bias'), ('2.weight', '2.weight'), ('2.bias',
        '2.bias')
    ],
    'sequential_of_names': [
        ('a.weight', 'a.weight'), ('a.bias', 'a.bias'), ('c.weight', 'c.weight'), ('c.bias',
        'c.bias')
    ],
    'sequential_of_sequentials': [
        ('body.0.0.weight', 'body.0.0.weight'), ('body.0.0.bias', 'body.0.0.bias'),
        ('body.0.1.weight', 'body.0.1.weight'), ('body.0.1.bias', 'body.0.1.bias'),
        ('body.1.1.weight', 'body.1.1.weight'), ('body.1.1.bias', 'body.1.1.bias')
    ],
    'sequential_of_names_in_a_cell': [
        ('body.a.weight', 'body.a.weight'), ('body.a.bias', 'body.a.bias'), ('body.c.weight',
        'body.c.weight'), ('body.c.bias', 'body.c.bias')
    ],
    'sequential_appended_before': [
        ('body.0.weight', 'body.0.weight'), ('body.0.bias', 'body.0.bias'), ('body.1.fc.weight',
        'body.1.fc.weight'), ('body.1.fc.bias', 'body.1.fc.bias')
    ],
    'sequential_appended_when_empty_and_set': [
        ('body.0.weight', '0.weight'), ('body.0.bias', '0.bias'), ('body.1.fc.weight',
        '1.fc.weight'), ('body.1.fc.bias', '1.fc.bias')
    ],
    'sequential_appended_when_filled_and_set': [
        ('body.0.weight', 'body.0.weight'), ('body.0.bias', 'body.0.bias'), ('body.1.weight',
        'body.1.weight'), ('body.1.bias', 'body.1.bias'), ('body.2.fc.weight', 'body.2.fc.weight'),
        ('body.2.fc.bias', 'body.2.fc.bias')
    ],
    'sequential_appended_when_filled_without_weights': [
        ('body.1.weight', '1.weight'), ('body.1.bias', '1.bias'), ('body.2.weight', '2.weight'),
        ('body.2.bias', '2.bias')
    ],
    'sequential_appended_two_levels_down': [
        ('net.body.0.weight', 'net.body.0.weight'), ('net.body.0.bias', 'net.body.0.bias'),
        ('net.body.1.weight', 'net.body.1.weight'), ('net.body.1.bias', 'net.body.1.bias')
    ],
    'sequential_item_replaced': [
        ('body.0.weight', 'body.0.weight'), ('body.0.bias', 'body.0.bias'), ('body.1.fc.weight',
        'body.1.fc.weight'), ('body.1.fc.bias', 'body.1.fc.bias')
    ],
    'sequential_item_replaced_from_the_end': [
        ('0.weight', '0.weight'), ('0.bias', '0.bias'), ('1.fc.weight', '1.fc.weight'),
        ('1.fc.bias', '1.fc.bias')
    ],
    'sequential_item_deleted': [
        ('body.0.fc.weight', 'body.0.fc.weight'), ('body.0.fc.bias', 'body.0.fc.bias'),
        ('body.1.weight', 'body.1.weight'), ('body.1.bias', 'body.1.bias')
    ],
    'sequential_items_deleted': [
        ('0.weight', '0.weight'), ('0.bias', '0.bias'), ('1.weight', '1.weight'), ('1.bias',
        '1.bias'), ('2.weight', '2.weight'), ('2.bias', '2.bias')
    ],
    'sequential_of_names_item_replaced': [
        ('body.a.weight', 'body.a.weight'), ('body.a.bias', 'body.a.bias'), ('body.c.fc.weight',
        'body.c.fc.weight'), ('body.c.fc.bias', 'body.c.fc.bias')
    ],
    'sequential_of_names_appended': [
        ('body.a.weight', 'body.a.weight'), ('body.a.bias', 'body.a.bias'), ('body.c.weight',
        'body.c.weight'), ('body.c.bias', 'body.c.bias'), ('body.2.weight', 'body.2.weight'),
        ('body.2.bias', 'body.2.bias')
    ],
    'sequential_with_an_attribute': [
        ('0.weight', '0.weight'), ('0.bias', '0.bias'), ('extra.weight', 'extra.weight'),
        ('extra.bias', 'extra.bias'), ('2.weight', '2.weight'), ('2.bias', '2.bias')
    ],
    'sequential_inserted_by_name': [
        ('body.0.weight', 'body.0.weight'), ('body.0.bias', 'body.0.bias'), ('body.tail.weight',
        'body.tail.weight'), ('body.tail.bias', 'body.tail.bias')
    ],
    'sequential_slice_of_it': [
        ('1.weight', '1.weight'), ('1.bias', '1.bias'), ('2.weight', '2.weight'), ('2.bias',
        '2.bias')
    ],
    'sequential_slice_set': [
        ('part.1.weight', 'part.1.weight'), ('part.1.bias', 'part.1.bias'), ('part.2.weight',
        'part.2.weight'), ('part.2.bias', 'part.2.bias')
    ],
    'list_before': [
        ('layers.0.weight', 'layers.0.weight'), ('layers.0.bias', 'layers.0.bias'),
        ('layers.1.weight', 'layers.1.weight'), ('layers.1.bias', 'layers.1.bias')
    ],
    'list_alone': [
        ('0.weight', '0.weight'), ('0.bias', '0.bias'), ('2.fc.weight', '2.fc.weight'),
        ('2.fc.bias', '2.fc.bias')
    ],
    'list_appended_before': [
        ('layers.0.fc.weight', 'layers.0.fc.weight'), ('layers.0.fc.bias', 'layers.0.fc.bias'),
        ('layers.1.fc.weight', 'layers.1.fc.weight'), ('layers.1.fc.bias', 'layers.1.fc.bias'),
        ('layers.2.fc.weight', 'layers.2.fc.weight'), ('layers.2.fc.bias', 'layers.2.fc.bias')
    ],
    'list_appended_when_empty_and_set': [
        ('transformers.0.blocks.weight', '0.blocks.weight'), ('transformers.0.blocks.bias',
        '0.blocks.bias'), ('transformers.1.blocks.weight', '1.blocks.weight'),
        ('transformers.1.blocks.bias', '1.blocks.bias'), ('transformers.2.blocks.weight',
        '2.blocks.weight'), ('transformers.2.blocks.bias', '2.blocks.bias')
    ],
    'list_appended_when_filled_and_set': [
        ('layers.0.weight', 'layers.0.weight'), ('layers.0.bias', 'layers.0.bias'),
        ('layers.1.weight', 'layers.1.weight'), ('layers.1.bias', 'layers.1.bias'),
        ('layers.2.fc.weight', 'layers.2.fc.weight'), ('layers.2.fc.bias', 'layers.2.fc.bias')
    ],
    'list_appended_two_levels_down': [
        ('net.layers.0.weight', 'net.layers.0.weight'), ('net.layers.0.bias', 'net.layers.0.bias'),
        ('net.layers.1.weight', 'net.layers.1.weight'), ('net.layers.1.bias', 'net.layers.1.bias')
    ],
    'list_extended_when_empty_and_set': [
        ('layers.0.weight', '0.weight'), ('layers.0.bias', '0.bias'), ('layers.1.weight',
        '1.weight'), ('layers.1.bias', '1.bias')
    ],
    'list_extended_when_filled_and_set': [
        ('layers.0.weight', 'layers.0.weight'), ('layers.0.bias', 'layers.0.bias'),
        ('layers.1.weight', 'layers.1.weight'), ('layers.1.bias', 'layers.1.bias'),
        ('layers.2.weight', 'layers.2.weight'), ('layers.2.bias', 'layers.2.bias')
    ],
    'list_inserted': [
        ('layers.0.weight', 'layers.0.weight'), ('layers.0.bias', 'layers.0.bias'),
        ('layers.1.weight', 'layers.1.weight'), ('layers.1.bias', 'layers.1.bias'),
        ('layers.2.weight', 'layers.2.weight'), ('layers.2.bias', 'layers.2.bias'),
        ('layers.3.fc.weight', 'layers.3.fc.weight'), ('layers.3.fc.bias', 'layers.3.fc.bias')
    ],
    'list_inserted_alone': [
        ('0.weight', '0.weight'), ('0.bias', '0.bias'), ('1.new.weight', '1.new.weight'),
        ('1.new.bias', '1.new.bias'), ('2.fc.weight', '2.fc.weight'), ('2.fc.bias', '2.fc.bias')
    ],
    'list_item_replaced': [
        ('layers.0.fc.weight', 'layers.0.fc.weight'), ('layers.0.fc.bias', 'layers.0.fc.bias'),
        ('layers.1.weight', 'layers.1.weight'), ('layers.1.bias', 'layers.1.bias')
    ],
    'list_only_item_replaced': [
        ('layers.0.fc.weight', 'layers.0.fc.weight'), ('layers.0.fc.bias', 'layers.0.fc.bias')
    ],
    'list_item_deleted': [
        ('layers.0.fc.weight', 'layers.0.fc.weight'), ('layers.0.fc.bias', 'layers.0.fc.bias'),
        ('layers.1.weight', 'layers.1.weight'), ('layers.1.bias', 'layers.1.bias')
    ],
    'list_slice': [
        ('0.weight', '0.weight'), ('0.bias', '0.bias'), ('1.weight', '1.weight'), ('1.bias',
        '1.bias')
    ],
    'list_of_lists': [
        ('layers.0.0.weight', 'layers.0.0.weight'), ('layers.0.0.bias', 'layers.0.0.bias'),
        ('layers.0.1.weight', 'layers.0.1.weight'), ('layers.0.1.bias', 'layers.0.1.bias'),
        ('layers.1.0.weight', 'layers.1.0.weight'), ('layers.1.0.bias', 'layers.1.0.bias')
    ],
    'list_of_lists_from_the_outside': [
        ('layers.0.0.weight', '0.weight'), ('layers.0.0.bias', '0.bias'), ('layers.0.1.weight',
        '1.weight'), ('layers.0.1.bias', '1.bias'), ('layers.1.0.weight', '0.weight'),
        ('layers.1.0.bias', '0.bias'), ('layers.1.1.weight', '1.weight'), ('layers.1.1.bias',
        '1.bias')
    ],
    'list_of_lists_filled_then_appended': [
        ('layers.0.0.weight', '0.0.weight'), ('layers.0.0.bias', '0.0.bias'), ('layers.0.1.weight',
        '0.1.weight'), ('layers.0.1.bias', '0.1.bias'), ('layers.0.2.fc.weight', '0.2.fc.weight'),
        ('layers.0.2.fc.bias', '0.2.fc.bias'), ('layers.1.0.weight', '0.1.0.weight'),
        ('layers.1.0.bias', '0.1.0.bias'), ('layers.1.1.weight', '0.1.1.weight'),
        ('layers.1.1.bias', '0.1.1.bias'), ('layers.1.2.fc.weight', '0.1.2.fc.weight'),
        ('layers.1.2.fc.bias', '0.1.2.fc.bias')
    ],
    'list_without_prefix': [
        ('0.a.weight', 'a.weight'), ('0.a.bias', 'a.bias'), ('1.b.weight', 'b.weight'), ('1.b.bias',
        'b.bias')
    ],
    'list_without_prefix_appended': [
        ('0.d.weight', 'd.weight'), ('0.d.bias', 'd.bias'), ('1.a.weight', 'a.weight'), ('1.a.bias',
        'a.bias'), ('2.b.weight', 'b.weight'), ('2.b.bias', 'b.bias'), ('3.c.weight', 'c.weight'),
        ('3.c.bias', 'c.bias')
    ],
    'list_without_prefix_set': [
        ('layers.0.a.weight', 'layers.0.a.weight'), ('layers.0.a.bias', 'layers.0.a.bias'),
        ('layers.1.b.weight', 'b.weight'), ('layers.1.b.bias', 'b.bias')
    ],
    'sequential_of_a_list_of_cells': [
        ('a.0.fc.weight', 'b.0.fc.weight'), ('a.0.fc.bias', 'b.0.fc.bias'), ('a.1.fc.weight',
        'a.1.fc.weight'), ('a.1.fc.bias', 'a.1.fc.bias')
    ],
    'list_in_sequential': [
        ('0.layers.0.weight', '0.layers.0.weight'), ('0.layers.0.bias', '0.layers.0.bias'),
        ('1.weight', '1.weight'), ('1.bias', '1.bias')
    ],
    'list_in_sequential_appended': [
        ('body.0.layers.0.weight', 'body.0.layers.0.weight'), ('body.0.layers.0.bias',
        'body.0.layers.0.bias'), ('body.0.layers.1.weight', 'body.0.layers.1.weight'),
        ('body.0.layers.1.bias', 'body.0.layers.1.bias'), ('body.1.weight', 'body.1.weight'),
        ('body.1.bias', 'body.1.bias')
    ],
    'numbers_in_the_path': [
        ('layers.0.0.weight', 'layers.0.0.weight'), ('layers.0.0.bias', 'layers.0.0.bias'),
        ('layers.0.1.weight', 'layers.0.1.weight'), ('layers.0.1.bias', 'layers.0.1.bias'),
        ('layers.0.2.weight', 'layers.0.2.weight'), ('layers.0.2.bias', 'layers.0.2.bias'),
        ('layers.1.weight', 'layers.0.1.weight'), ('layers.1.bias', 'layers.0.1.bias')
    ],
    'name_that_is_a_number_of_the_path': [
        ('y.0.x.0.weight', 'y.0.x.0.weight'), ('y.0.x.0.bias', 'y.0.x.0.bias'), ('y.0.x.1.weight',
        'y.0.x.1.weight'), ('y.0.x.1.bias', 'y.0.x.1.bias'), ('y.0.x.2.weight', 'y.0.x.2.weight'),
        ('y.0.x.2.bias', 'y.0.x.2.bias')
    ],
    'first_item_without_weights': [
        ('body.1.weight', 'body.1.weight'), ('body.1.bias', 'body.1.bias'), ('body.2.weight',
        'body.2.weight'), ('body.2.bias', 'body.2.bias')
    ],
    'lists_in_a_list': [
        ('0.0.weight', '0.0.weight'), ('0.0.bias', '0.0.bias'), ('1.0.weight', '1.0.weight'),
        ('1.0.bias', '1.0.bias'), ('2.weight', '2.weight'), ('2.bias', '2.bias')
    ],
    'list_appended_to_a_list_of_one_list': [
        ('0.0.weight', '0.0.weight'), ('0.0.bias', '0.0.bias'), ('1.0.weight', '0.1.0.weight'),
        ('1.0.bias', '0.1.0.bias'), ('2.weight', '0.2.weight'), ('2.bias', '0.2.bias'), ('3.weight',
        '0.3.weight'), ('3.bias', '0.3.bias')
    ],
    'list_inserted_into_a_list_of_one_list': [
        ('0.0.weight', '0.0.0.weight'), ('0.0.bias', '0.0.0.bias'), ('1.weight', '0.1.weight'),
        ('1.bias', '0.1.bias'), ('2.0.weight', '0.2.weight'), ('2.0.bias', '0.2.bias')
    ],
    'list_extended_by_lists_when_set': [
        ('layers.0.0.weight', '0.0.weight'), ('layers.0.0.bias', '0.0.bias'), ('layers.1.weight',
        '1.weight'), ('layers.1.bias', '1.bias'), ('layers.2.weight', '2.weight'), ('layers.2.bias',
        '2.bias')
    ],
    'list_with_numbers_in_its_name': [
        ('0.0.weight', 'x.0.0.0.weight'), ('0.0.bias', 'x.0.0.0.bias'), ('1.weight',
        'x.0.1.weight'), ('1.bias', 'x.0.1.bias')
    ],
    'item_deleted_from_a_list_of_lists': [
        ('layers.0.0.weight', 'layers.0.0.weight'), ('layers.0.0.bias', 'layers.0.0.bias'),
        ('layers.1.weight', 'layers.0.1.weight'), ('layers.1.bias', 'layers.0.1.bias')
    ],
    'dictionary': [
        ('fc.weight', 'fc.weight'), ('fc.bias', 'fc.bias')
    ],
    'dictionary_in_a_cell': [
        ('parts.fc.weight', 'parts.fc.weight'), ('parts.fc.bias', 'parts.fc.bias'),
        ('parts.b.fc.weight', 'parts.b.fc.weight'), ('parts.b.fc.bias', 'parts.b.fc.bias')
    ],
    'dictionary_filled_when_set': [
        ('parts.fc.weight', 'fc.weight'), ('parts.fc.bias', 'fc.bias'), ('parts.b.fc.weight',
        'b.fc.weight'), ('parts.b.fc.bias', 'b.fc.bias')
    ],
    'dictionary_with_one_more_when_set': [
        ('parts.fc.weight', 'parts.fc.weight'), ('parts.fc.bias', 'parts.fc.bias'),
        ('parts.b.fc.weight', 'parts.b.fc.weight'), ('parts.b.fc.bias', 'parts.b.fc.bias'),
        ('parts.c.weight', 'parts.c.weight'), ('parts.c.bias', 'parts.c.bias')
    ],
    'dictionary_item_replaced': [
        ('parts.fc.new.weight', 'parts.fc.new.weight'), ('parts.fc.new.bias', 'parts.fc.new.bias'),
        ('parts.d.weight', 'parts.d.weight'), ('parts.d.bias', 'parts.d.bias')
    ],
    'dictionary_without_prefix': [
        ('fc.a.weight', 'a.weight'), ('fc.a.bias', 'a.bias'), ('b.c.weight', 'c.weight'),
        ('b.c.bias', 'c.bias')
    ],
    'cell_in_cell': [
        ('a.b.fc.weight', 'a.b.fc.weight'), ('a.b.fc.bias', 'a.b.fc.bias')
    ],
    'child_added_to_a_child_that_is_set': [
        ('inner.fc.weight', 'fc.weight'), ('inner.fc.bias', 'fc.bias')
    ],
    'three_levels_from_the_outside': [
        ('b.c.fc.weight', 'fc.weight'), ('b.c.fc.bias', 'fc.bias'), ('last.weight', 'last.weight'),
        ('last.bias', 'last.bias')
    ],
    'parameter_without_a_name': [
        ('inner.w', 'inner.w')
    ],
    'parameter_with_a_name': [
        ('inner.w', 'inner.w'), ('inner.v', 'inner.v')
    ],
    'parameter_with_a_name_at_the_top': [
        ('w', 'other'), ('v', 'v')
    ],
    'parameter_set_after_the_cell': [
        ('inner.w', 'w'), ('inner.v', 'v.x')
    ],
    'one_parameter_in_two_cells': [
        ('a.w', 'b.v'), ('c.weight', 'c.weight'), ('c.bias', 'c.bias')
    ],
    'one_layer_in_two_places': [
        ('a.weight', 'c.d.weight'), ('a.bias', 'c.d.bias')
    ],
    'one_layer_in_a_list_and_outside': [
        ('layers.0.weight', 'head.weight'), ('layers.0.bias', 'head.bias'), ('layers.1.weight',
        'layers.1.weight'), ('layers.1.bias', 'layers.1.bias')
    ],
    'one_layer_outside_and_in_a_list': [
        ('head.weight', 'layers.1.weight'), ('head.bias', 'layers.1.bias'), ('layers.0.weight',
        'layers.0.weight'), ('layers.0.bias', 'layers.0.bias')
    ],
    'child_replaced': [
        ('net.a.fc.weight', 'net.a.fc.weight'), ('net.a.fc.bias', 'net.a.fc.bias'), ('net.b.weight',
        'net.b.weight'), ('net.b.bias', 'net.b.bias')
    ],
    'tied_weight': [
        ('embedding.embedding_table', 'embedding.embedding_table')
    ],
    'tied_weight_in_a_child': [
        ('net.embedding.embedding_table', 'net.embedding.embedding_table')
    ],
    'cell_without_prefix': [
        ('w', 'w'), ('a.fc.weight', 'fc.weight'), ('a.fc.bias', 'fc.bias')
    ],
    'cell_without_prefix_in_a_cell': [
        ('net.a.fc.weight', 'net.a.fc.weight'), ('net.a.fc.bias', 'net.a.fc.bias')
    ],
    'cell_in_a_cell_without_prefix': [
        ('net.a.weight', 'a.weight'), ('net.a.bias', 'a.bias'), ('net.b.weight', 'b.weight'),
        ('net.b.bias', 'b.bias')
    ],
    'inserted_child': [
        ('fc.weight', 'weight'), ('fc.bias', 'bias')
    ],
    'inserted_child_in_a_cell': [
        ('net.fc.d.weight', 'net.fc.d.weight'), ('net.fc.d.bias', 'net.fc.d.bias')
    ],
    'inserted_parameter': [
        ('w', 'w'), ('v', 'u')
    ],
    'parameter_tuple': [
        ('a', 'a'), ('b', 'b')
    ],
    'parameter_tuple_in_a_cell': [
        ('net.a', 'net.a'), ('net.b', 'net.b')
    ],
    'parameter_tuple_of_its_own_parameters': [
        ('net.w', 'net.w'), ('net.fc.weight', 'net.fc.weight'), ('net.fc.bias', 'net.fc.bias')
    ],
    'update_names': [
        ('w', 'x.w'), ('fc.weight', 'x.fc.weight'), ('fc.bias', 'x.fc.bias')
    ],
    'update_names_without_dot': [
        ('fc.weight', 'teacher_fc.weight'), ('fc.bias', 'teacher_fc.bias')
    ],
    'update_names_of_itself_alone': [
        ('w', 'x.w'), ('fc.weight', 'fc.weight'), ('fc.bias', 'fc.bias')
    ],
    'update_names_with_nothing': [
        ('w', 'w'), ('fc.weight', 'fc.weight'), ('fc.bias', 'fc.bias')
    ],
    'update_names_then_set': [
        ('net.fc.weight', 'net.fc.weight'), ('net.fc.bias', 'net.fc.bias')
    ],
    'update_names_then_append': [
        ('0.weight', 'x.0.weight'), ('0.bias', 'x.0.bias'), ('1.weight', 'x.1.weight'), ('1.bias',
        'x.1.bias')
    ],
    'with_loss': [
        ('_backbone.fc.weight', 'fc.weight'), ('_backbone.fc.bias', 'fc.bias')
    ],
    'with_loss_then_added': [
        ('_backbone.fc.weight', 'fc.weight'), ('_backbone.fc.bias', 'fc.bias'),
        ('_backbone.late.weight', 'late.weight'), ('_backbone.late.bias', 'late.bias')
    ],
    'with_loss_that_has_weights': [
        ('_backbone.fc.weight', 'fc.weight'), ('_backbone.fc.bias', 'fc.bias'), ('_loss_fn.w', 'w')
    ],
    'train_one_step': [
        ('fc.weight', 'fc.weight'), ('fc.bias', 'fc.bias'), ('optimizer.global_step',
        'global_step'), ('optimizer.learning_rate', 'learning_rate'), ('optimizer.momentum',
        'momentum'), ('optimizer.moments.fc.weight', 'moments.fc.weight'),
        ('optimizer.moments.fc.bias', 'moments.fc.bias')
    ],
    'train_one_step_adam': [
        ('fc.weight', 'fc.weight'), ('fc.bias', 'fc.bias'), ('optimizer.global_step',
        'global_step'), ('optimizer.learning_rate', 'learning_rate'), ('optimizer.beta1_power',
        'beta1_power'), ('optimizer.beta2_power', 'beta2_power'), ('optimizer.moment1.fc.weight',
        'moment1.fc.weight'), ('optimizer.moment1.fc.bias', 'moment1.fc.bias'),
        ('optimizer.moment2.fc.weight', 'moment2.fc.weight'), ('optimizer.moment2.fc.bias',
        'moment2.fc.bias')
    ],
    'train_with_loss_scale': [
        ('fc.weight', 'fc.weight'), ('fc.bias', 'fc.bias'), ('scale_sense', 'scale_sense'),
        ('optimizer.global_step', 'global_step'), ('optimizer.learning_rate', 'learning_rate'),
        ('optimizer.momentum', 'momentum'), ('optimizer.accum.fc.weight', 'accum.fc.weight'),
        ('optimizer.accum.fc.bias', 'accum.fc.bias'), ('optimizer.stat.fc.weight',
        'stat.fc.weight'), ('optimizer.stat.fc.bias', 'stat.fc.bias'),
        ('loss_scaling_manager.cur_iter', 'current_iterator_step'),
        ('loss_scaling_manager.last_overflow_iter', 'last_overflow_iterator_step')
    ],
    'optimizer_on_a_cell': [
        ('fc.weight', 'optimizer.fc.weight'), ('fc.bias', 'optimizer.fc.bias'),
        ('optimizer.global_step', 'optimizer.global_step'), ('optimizer.learning_rate',
        'optimizer.learning_rate'), ('optimizer.momentum', 'optimizer.momentum'),
        ('optimizer.moments.fc.weight', 'optimizer.moments.fc.weight'),
        ('optimizer.moments.fc.bias', 'optimizer.moments.fc.bias')
    ],
    'lstm': [
        ('rnn.weight_ih_l0', 'rnn.weight_ih_l0'), ('rnn.weight_ih_l0_reverse',
        'rnn.weight_ih_l0_reverse'), ('rnn.weight_ih_l1', 'rnn.weight_ih_l1'),
        ('rnn.weight_ih_l1_reverse', 'rnn.weight_ih_l1_reverse'), ('rnn.weight_hh_l0',
        'rnn.weight_hh_l0'), ('rnn.weight_hh_l0_reverse', 'rnn.weight_hh_l0_reverse'),
        ('rnn.weight_hh_l1', 'rnn.weight_hh_l1'), ('rnn.weight_hh_l1_reverse',
        'rnn.weight_hh_l1_reverse'), ('rnn.bias_ih_l0', 'rnn.bias_ih_l0'),
        ('rnn.bias_ih_l0_reverse', 'rnn.bias_ih_l0_reverse'), ('rnn.bias_ih_l1', 'rnn.bias_ih_l1'),
        ('rnn.bias_ih_l1_reverse', 'rnn.bias_ih_l1_reverse'), ('rnn.bias_hh_l0', 'rnn.bias_hh_l0'),
        ('rnn.bias_hh_l0_reverse', 'rnn.bias_hh_l0_reverse'), ('rnn.bias_hh_l1', 'rnn.bias_hh_l1'),
        ('rnn.bias_hh_l1_reverse', 'rnn.bias_hh_l1_reverse')
    ],
    'gru_cell': [
        ('rnn.weight_ih', 'rnn.weight_ih'), ('rnn.weight_hh', 'rnn.weight_hh'), ('rnn.bias_ih',
        'rnn.bias_ih'), ('rnn.bias_hh', 'rnn.bias_hh')
    ],
    'batch_norm': [
        ('bn.moving_mean', 'bn.moving_mean'), ('bn.moving_variance', 'bn.moving_variance'),
        ('bn.gamma', 'bn.gamma'), ('bn.beta', 'bn.beta'), ('ln.gamma', 'ln.gamma'), ('ln.beta',
        'ln.beta'), ('gn.gamma', 'gn.gamma'), ('gn.beta', 'gn.beta')
    ],
    'combined': [
        ('conv.conv.weight', 'conv.conv.weight'), ('conv.batchnorm.moving_mean',
        'conv.batchnorm.moving_mean'), ('conv.batchnorm.moving_variance',
        'conv.batchnorm.moving_variance'), ('conv.batchnorm.gamma', 'conv.batchnorm.gamma'),
        ('conv.batchnorm.beta', 'conv.batchnorm.beta'), ('conv.activation.w', 'conv.activation.w'),
        ('fc.dense.weight', 'fc.dense.weight'), ('fc.dense.bias', 'fc.dense.bias'),
        ('fc.batchnorm.moving_mean', 'fc.batchnorm.moving_mean'), ('fc.batchnorm.moving_variance',
        'fc.batchnorm.moving_variance'), ('fc.batchnorm.gamma', 'fc.batchnorm.gamma'),
        ('fc.batchnorm.beta', 'fc.batchnorm.beta')
    ],
    'transformer': [
        ('encoder.layers.0.self_attn.in_proj_weight', 'encoder.layers.0.self_attn.in_proj_weight'),
        ('encoder.layers.0.self_attn.in_proj_bias', 'encoder.layers.0.self_attn.in_proj_bias'),
        ('encoder.layers.0.self_attn.out_proj.weight',
        'encoder.layers.0.self_attn.out_proj.weight'), ('encoder.layers.0.self_attn.out_proj.bias',
        'encoder.layers.0.self_attn.out_proj.bias'), ('encoder.layers.0.dense1.weight',
        'encoder.layers.0.dense1.weight'), ('encoder.layers.0.dense1.bias',
        'encoder.layers.0.dense1.bias'), ('encoder.layers.0.dense2.weight',
        'encoder.layers.0.dense2.weight'), ('encoder.layers.0.dense2.bias',
        'encoder.layers.0.dense2.bias'), ('encoder.layers.0.norm1.gamma',
        'encoder.layers.0.norm1.gamma'), ('encoder.layers.0.norm1.beta',
        'encoder.layers.0.norm1.beta'), ('encoder.layers.0.norm2.gamma',
        'encoder.layers.0.norm2.gamma'), ('encoder.layers.0.norm2.beta',
        'encoder.layers.0.norm2.beta'), ('encoder.layers.1.self_attn.in_proj_weight',
        'encoder.layers.1.self_attn.in_proj_weight'), ('encoder.layers.1.self_attn.in_proj_bias',
        'encoder.layers.1.self_attn.in_proj_bias'), ('encoder.layers.1.self_attn.out_proj.weight',
        'encoder.layers.1.self_attn.out_proj.weight'), ('encoder.layers.1.self_attn.out_proj.bias',
        'encoder.layers.1.self_attn.out_proj.bias'), ('encoder.layers.1.dense1.weight',
        'encoder.layers.1.dense1.weight'), ('encoder.layers.1.dense1.bias',
        'encoder.layers.1.dense1.bias'), ('encoder.layers.1.dense2.weight',
        'encoder.layers.1.dense2.weight'), ('encoder.layers.1.dense2.bias',
        'encoder.layers.1.dense2.bias'), ('encoder.layers.1.norm1.gamma',
        'encoder.layers.1.norm1.gamma'), ('encoder.layers.1.norm1.beta',
        'encoder.layers.1.norm1.beta'), ('encoder.layers.1.norm2.gamma',
        'encoder.layers.1.norm2.gamma'), ('encoder.layers.1.norm2.beta',
        'encoder.layers.1.norm2.beta')
    ],
    'attention': [
        ('a.in_proj_weight', 'a.in_proj_weight'), ('a.in_proj_bias', 'a.in_proj_bias'),
        ('a.out_proj.weight', 'a.out_proj.weight'), ('a.out_proj.bias', 'a.out_proj.bias'),
        ('b.q_proj_weight', 'b.q_proj_weight'), ('b.k_proj_weight', 'b.k_proj_weight'),
        ('b.v_proj_weight', 'b.v_proj_weight'), ('b.in_proj_bias', 'b.in_proj_bias'), ('b.bias_k',
        'b.bias_k'), ('b.bias_v', 'b.bias_v'), ('b.out_proj.weight', 'b.out_proj.weight'),
        ('b.out_proj.bias', 'b.out_proj.bias')
    ],
    'transformer_decoder': [
        ('decoder.layers.0.self_attn.in_proj_weight', 'decoder.layers.0.self_attn.in_proj_weight'),
        ('decoder.layers.0.self_attn.in_proj_bias', 'decoder.layers.0.self_attn.in_proj_bias'),
        ('decoder.layers.0.self_attn.out_proj.weight',
        'decoder.layers.0.self_attn.out_proj.weight'), ('decoder.layers.0.self_attn.out_proj.bias',
        'decoder.layers.0.self_attn.out_proj.bias'),
        ('decoder.layers.0.multihead_attn.in_proj_weight',
        'decoder.layers.0.multihead_attn.in_proj_weight'),
        ('decoder.layers.0.multihead_attn.in_proj_bias',
        'decoder.layers.0.multihead_attn.in_proj_bias'),
        ('decoder.layers.0.multihead_attn.out_proj.weight',
        'decoder.layers.0.multihead_attn.out_proj.weight'),
        ('decoder.layers.0.multihead_attn.out_proj.bias',
        'decoder.layers.0.multihead_attn.out_proj.bias'), ('decoder.layers.0.dense1.weight',
        'decoder.layers.0.dense1.weight'), ('decoder.layers.0.dense1.bias',
        'decoder.layers.0.dense1.bias'), ('decoder.layers.0.dense2.weight',
        'decoder.layers.0.dense2.weight'), ('decoder.layers.0.dense2.bias',
        'decoder.layers.0.dense2.bias'), ('decoder.layers.0.norm1.gamma',
        'decoder.layers.0.norm1.gamma'), ('decoder.layers.0.norm1.beta',
        'decoder.layers.0.norm1.beta'), ('decoder.layers.0.norm2.gamma',
        'decoder.layers.0.norm2.gamma'), ('decoder.layers.0.norm2.beta',
        'decoder.layers.0.norm2.beta'), ('decoder.layers.0.norm3.gamma',
        'decoder.layers.0.norm3.gamma'), ('decoder.layers.0.norm3.beta',
        'decoder.layers.0.norm3.beta'), ('decoder.layers.1.self_attn.in_proj_weight',
        'decoder.layers.1.self_attn.in_proj_weight'), ('decoder.layers.1.self_attn.in_proj_bias',
        'decoder.layers.1.self_attn.in_proj_bias'), ('decoder.layers.1.self_attn.out_proj.weight',
        'decoder.layers.1.self_attn.out_proj.weight'), ('decoder.layers.1.self_attn.out_proj.bias',
        'decoder.layers.1.self_attn.out_proj.bias'),
        ('decoder.layers.1.multihead_attn.in_proj_weight',
        'decoder.layers.1.multihead_attn.in_proj_weight'),
        ('decoder.layers.1.multihead_attn.in_proj_bias',
        'decoder.layers.1.multihead_attn.in_proj_bias'),
        ('decoder.layers.1.multihead_attn.out_proj.weight',
        'decoder.layers.1.multihead_attn.out_proj.weight'),
        ('decoder.layers.1.multihead_attn.out_proj.bias',
        'decoder.layers.1.multihead_attn.out_proj.bias'), ('decoder.layers.1.dense1.weight',
        'decoder.layers.1.dense1.weight'), ('decoder.layers.1.dense1.bias',
        'decoder.layers.1.dense1.bias'), ('decoder.layers.1.dense2.weight',
        'decoder.layers.1.dense2.weight'), ('decoder.layers.1.dense2.bias',
        'decoder.layers.1.dense2.bias'), ('decoder.layers.1.norm1.gamma',
        'decoder.layers.1.norm1.gamma'), ('decoder.layers.1.norm1.beta',
        'decoder.layers.1.norm1.beta'), ('decoder.layers.1.norm2.gamma',
        'decoder.layers.1.norm2.gamma'), ('decoder.layers.1.norm2.beta',
        'decoder.layers.1.norm2.beta'), ('decoder.layers.1.norm3.gamma',
        'decoder.layers.1.norm3.gamma'), ('decoder.layers.1.norm3.beta',
        'decoder.layers.1.norm3.beta')
    ],
    'optimizers': [
        ('adagrad', 'accum.fc.bias'), ('adagrad', 'accum.fc.weight'), ('adagrad', 'fc.bias'),
        ('adagrad', 'fc.weight'), ('adagrad', 'global_step'), ('adagrad', 'learning_rate'), ('adam',
        'beta1_power'), ('adam', 'beta2_power'), ('adam', 'fc.bias'), ('adam', 'fc.weight'),
        ('adam', 'global_step'), ('adam', 'learning_rate'), ('adam', 'moment1.fc.bias'), ('adam',
        'moment1.fc.weight'), ('adam', 'moment2.fc.bias'), ('adam', 'moment2.fc.weight'),
        ('adam_amsgrad', 'beta1_power'), ('adam_amsgrad', 'beta2_power'), ('adam_amsgrad',
        'fc.bias'), ('adam_amsgrad', 'fc.weight'), ('adam_amsgrad', 'global_step'), ('adam_amsgrad',
        'learning_rate'), ('adam_amsgrad', 'moment1.fc.bias'), ('adam_amsgrad',
        'moment1.fc.weight'), ('adam_amsgrad', 'moment2.fc.bias'), ('adam_amsgrad',
        'moment2.fc.weight'), ('adam_amsgrad', 'vhat.fc.bias'), ('adam_amsgrad', 'vhat.fc.weight'),
        ('adam_nesterov', 'beta1_power'), ('adam_nesterov', 'beta2_power'), ('adam_nesterov',
        'fc.bias'), ('adam_nesterov', 'fc.weight'), ('adam_nesterov', 'global_step'),
        ('adam_nesterov', 'learning_rate'), ('adam_nesterov', 'moment1.fc.bias'), ('adam_nesterov',
        'moment1.fc.weight'), ('adam_nesterov', 'moment2.fc.bias'), ('adam_nesterov',
        'moment2.fc.weight'), ('adam_weight_decay', 'adam_m.fc.bias'), ('adam_weight_decay',
        'adam_m.fc.weight'), ('adam_weight_decay', 'adam_v.fc.bias'), ('adam_weight_decay',
        'adam_v.fc.weight'), ('adam_weight_decay', 'fc.bias'), ('adam_weight_decay', 'fc.weight'),
        ('adam_weight_decay', 'global_step'), ('adam_weight_decay', 'learning_rate'), ('adamax',
        'beta1_power'), ('adamax', 'fc.bias'), ('adamax', 'fc.weight'), ('adamax', 'global_step'),
        ('adamax', 'learning_rate'), ('adamax', 'moment1.fc.bias'), ('adamax', 'moment1.fc.weight'),
        ('adamax', 'moment2.fc.bias'), ('adamax', 'moment2.fc.weight'), ('adadelta',
        'accum.fc.bias'), ('adadelta', 'accum.fc.weight'), ('adadelta', 'accum_update.fc.bias'),
        ('adadelta', 'accum_update.fc.weight'), ('adadelta', 'fc.bias'), ('adadelta', 'fc.weight'),
        ('adadelta', 'global_step'), ('adadelta', 'learning_rate'), ('adasum', 'ax_.fc.bias'),
        ('adasum', 'ax_.fc.weight'), ('adasum', 'eta_fc.bias'), ('adasum', 'eta_fc.weight'),
        ('adasum', 'fc.bias'), ('adasum', 'fc.weight'), ('adasum', 'global_step'), ('adasum',
        'learning_rate'), ('adasum', 'mu_fc.bias'), ('adasum', 'mu_fc.weight'), ('ftrl', 'fc.bias'),
        ('ftrl', 'fc.weight'), ('ftrl', 'global_step'), ('ftrl', 'learning_rate'), ('ftrl',
        'linear.fc.bias'), ('ftrl', 'linear.fc.weight'), ('ftrl', 'moments.fc.bias'), ('ftrl',
        'moments.fc.weight'), ('lamb', 'fc.bias'), ('lamb', 'fc.weight'), ('lamb', 'global_step'),
        ('lamb', 'lamb_m.fc.bias'), ('lamb', 'lamb_m.fc.weight'), ('lamb', 'lamb_v.fc.bias'),
        ('lamb', 'lamb_v.fc.weight'), ('lamb', 'learning_rate'), ('momentum', 'fc.bias'),
        ('momentum', 'fc.weight'), ('momentum', 'global_step'), ('momentum', 'learning_rate'),
        ('momentum', 'moments.fc.bias'), ('momentum', 'moments.fc.weight'), ('momentum',
        'momentum'), ('rmsprop', 'fc.bias'), ('rmsprop', 'fc.weight'), ('rmsprop', 'global_step'),
        ('rmsprop', 'learning_rate'), ('rmsprop', 'mean_square.fc.bias'), ('rmsprop',
        'mean_square.fc.weight'), ('rmsprop', 'moment.fc.bias'), ('rmsprop', 'moment.fc.weight'),
        ('rmsprop_centered', 'fc.bias'), ('rmsprop_centered', 'fc.weight'), ('rmsprop_centered',
        'global_step'), ('rmsprop_centered', 'learning_rate'), ('rmsprop_centered',
        'mean_grad.fc.bias'), ('rmsprop_centered', 'mean_grad.fc.weight'), ('rmsprop_centered',
        'mean_square.fc.bias'), ('rmsprop_centered', 'mean_square.fc.weight'), ('rmsprop_centered',
        'moment.fc.bias'), ('rmsprop_centered', 'moment.fc.weight'), ('rprop', 'fc.bias'), ('rprop',
        'fc.weight'), ('rprop', 'global_step'), ('rprop', 'learning_rate'), ('rprop',
        'prev.fc.bias'), ('rprop', 'prev.fc.weight'), ('rprop', 'step_size.fc.bias'), ('rprop',
        'step_size.fc.weight'), ('sgd', 'accum.fc.bias'), ('sgd', 'accum.fc.weight'), ('sgd',
        'fc.bias'), ('sgd', 'fc.weight'), ('sgd', 'global_step'), ('sgd', 'learning_rate'), ('sgd',
        'momentum'), ('sgd', 'stat.fc.bias'), ('sgd', 'stat.fc.weight'), ('groups', 'fc.bias'),
        ('groups', 'fc.weight'), ('groups', 'global_step'), ('groups', 'learning_rate'), ('groups',
        'learning_rate_group_0'), ('groups', 'moments.fc.bias'), ('groups', 'moments.fc.weight'),
        ('groups', 'momentum'), ('decay_groups', 'fc.bias'), ('decay_groups', 'fc.weight'),
        ('decay_groups', 'global_step'), ('decay_groups', 'learning_rate'), ('decay_groups',
        'moments.fc.bias'), ('decay_groups', 'moments.fc.weight'), ('decay_groups', 'momentum'),
        ('rates', 'accum.fc.bias'), ('rates', 'accum.fc.weight'), ('rates', 'fc.bias'), ('rates',
        'fc.weight'), ('rates', 'global_step'), ('rates', 'learning_rate'), ('rates', 'momentum'),
        ('rates', 'stat.fc.bias'), ('rates', 'stat.fc.weight'), ('schedule', 'accum.fc.bias'),
        ('schedule', 'accum.fc.weight'), ('schedule', 'fc.bias'), ('schedule', 'fc.weight'),
        ('schedule', 'global_step'), ('schedule', 'momentum'), ('schedule', 'stat.fc.bias'),
        ('schedule', 'stat.fc.weight')
    ],
}
