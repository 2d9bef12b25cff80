"""The real engine as referee of this project's rules; it must not be needed by an ordinary test run."""
