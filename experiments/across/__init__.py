"""What the paper expects of classifiers in general, tried on those of the other studies."""
