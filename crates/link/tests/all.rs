//! Tests of the links from outside. Those that count every allocation of their process have one each of their own.

mod capabilities;
mod cotmll_model;
mod lines;
mod marks;
mod model;
mod obstacles;
mod overtaking;
