//! `[metrics]`: a gateway's numbers for Prometheus.

mod page;
mod table;

use std::io;

use crate::clock;
use crate::http::{self, Listener, PLAIN, Request, respond};

pub use page::page;

/// Answers scrapes from now on, for the gateway of this device, until the process ends.
///
/// # Errors
/// There is no room for a thread.
pub(crate) fn start(listener: Listener, device: String) -> io::Result<()> {
    listener.start(
        "metrics",
        || {},
        move |stream, Request { path, .. }| {
            if path != "/metrics" {
                return respond(stream, "404 Not Found", &[("Content-Type", PLAIN)], "there is /metrics\n");
            }
            match http::ask(&device) {
                Some(status) => {
                    let page = page(&status, clock::seconds_of_day());
                    respond(stream, "200 OK", &[("Content-Type", OPEN_METRICS)], &page)
                }
                None => {
                    let silent = "the gateway does not answer\n";
                    respond(stream, "503 Service Unavailable", &[("Content-Type", PLAIN)], silent)
                }
            }
        },
    )
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
