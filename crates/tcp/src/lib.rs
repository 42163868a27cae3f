//! TCP without I/O.
