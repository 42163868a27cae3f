//! Tests of the tunnel from outside. Those of its memory count every allocation of their process, and have one each of their own.

mod attack;
mod between;
mod handshakes;
mod hub;
mod passing;
mod paths;
mod several_ways;
mod star;
mod workers;
