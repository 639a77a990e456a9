"""Files to predictions and back.

``read_predictions`` reads every format and returns ``Predictions``: probabilities or logits, class
names and, where the file has them, labels, groups and ids. Below it are

``formats``
    What a file holds, by its name or as a ``Layout`` says; compressed files; the standard input.
``array_files``
    .npz and .npy.
``tables``
    All else is a stream of record batches: ``open_table`` and ``write_table``, with Parquet and
    Arrow. CSV and TSV are in ``text_tables``, JSON in ``json_tables``, which asks ``scores``
    (scores by label, Hugging Face), ``answers`` (servers) and ``sample_logs``
    (lm-evaluation-harness) for probabilities.
``columns``
    Where columns become probabilities, labels and ids; ``label_files`` has labels of their own.
``class_tables``
    Costs and class balances, which people write by hand.
``datasets``
    The demonstration.
"""
