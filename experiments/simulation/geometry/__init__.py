"""What one iteration does in two classes, and where many iterations lead."""
