//! Tests of the proxy from outside. Those of its memory count every allocation of their process, and have one of their own.

mod chain;
mod crowding;
mod fetching;
mod minding;
mod opening;
mod pairing;
mod passing;
mod properties;
mod relaying;
mod surviving;
