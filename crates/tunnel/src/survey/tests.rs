//! Two ends that report over a simulated bottleneck with a queue, a delay, losses and somebody else's traffic.

mod attacks;
mod laws;
mod path;
