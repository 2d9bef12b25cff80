"""Runs the command line as `python -m recommender`; it must not do anything else."""

from recommender.start import main

if __name__ == "__main__":
    main()
