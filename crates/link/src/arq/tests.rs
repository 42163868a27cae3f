//! Two ends and a bad line between them, for tests of every protocol with a large window; and of expiring packets.

mod expiry;
pub(crate) mod pair;
