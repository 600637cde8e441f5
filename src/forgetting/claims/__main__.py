"""`python -m forgetting.claims`; see `forgetting.studies.survey`. (Other processes cannot import what stands here.)"""

from forgetting.studies.survey import main

if __name__ == "__main__":
    raise SystemExit(main())
