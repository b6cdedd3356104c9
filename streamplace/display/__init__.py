"""What is printed and shown in notebooks: reports as text and tables."""
