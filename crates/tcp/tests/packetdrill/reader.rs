//! Of the reader and the runner themselves: what is not in the language, and scripts that must fail.
