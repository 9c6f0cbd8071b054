"""What reading recorded answers needs: their file as lines, and the fields of a record."""
