"""Which speculative-decoding settings of SGLang are valid, which pay, and how to cure a launch; it only names the API."""
