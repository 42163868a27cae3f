//! What a gateway shows over HTTP: metrics and a page.

use std::net::SocketAddr;

use super::GatewayError;
use crate::config::Config;
use crate::http::Listener;
use crate::{metrics, page};

/// Where both are asked for, until that has begun.
#[derive(Debug)]
pub(super) struct Shown {
    metrics: Option<Listener>,
    page: Option<Listener>,
}

impl Shown {
    /// Listens, while there is a right to low ports.
    pub(super) fn open(config: &Config) -> Result<Self, GatewayError> {
        let listen = |table: &'static str, at: Option<SocketAddr>| {
            let listener =
                at.map(|at| Listener::bind(at).map_err(|error| GatewayError::Listen { table, at, error }));
            listener.transpose()
        };
        Ok(Self {
            metrics: listen("metrics", config.metrics.as_ref().map(|metrics| metrics.listen))?,
            page: listen("page", config.page.as_ref().map(|page| page.listen))?,
        })
    }

    /// Begins to answer; once.
    pub(super) fn start(&mut self, config: &Config) -> Result<(), GatewayError> {
        let device = || config.tun.name.as_str().to_owned();
        if let Some(listener) = self.metrics.take() {
            metrics::start(listener, device())?;
        }
        if let (Some(listener), Some(page)) = (self.page.take(), &config.page) {
            page::start(listener, page, device())?;
        }
        Ok(())
    }
}
