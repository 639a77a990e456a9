"""Files to predictions and back.

``predictions`` has the entry, ``read_predictions``, and the record that it returns. Below it are

``formats``
    What a file holds, by its name or as a ``Layout`` says; compressed files; the standard input.
``array_files``
    .npz and .npy.
``columns``
    Which columns of a table are probabilities, labels and ids; ``labels`` has what labels mean, and
    files of their own for them. Here and below PyArrow has to be there.
``tables``
    Tables as streams of record batches, with Parquet and Arrow. CSV and TSV are in
    ``text_tables``, JSON in ``json_tables``, which asks ``scores`` (scores by label, Hugging Face),
    ``answers`` (servers) and ``sample_logs`` (lm-evaluation-harness) for probabilities.
``class_tables``
    Costs and class balances, which people write by hand.
``datasets``
    The demonstration.
"""
