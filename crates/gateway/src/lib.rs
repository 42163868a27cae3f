//! The gateway daemon and its testbed.
