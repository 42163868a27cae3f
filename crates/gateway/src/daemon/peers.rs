//! The peers of a gateway: what the configuration says of each, given to the hub.

use std::collections::{BTreeMap, HashMap};

use base::Instant;
use base::config::ConfigError;
use tunnel::{Hub, Membership, PeerId, Tunnel};

use super::names::Names;
use super::{Gateway, GatewayError};
use crate::config::{Config, Peer};

/// The names of peers, by which people know them.
#[derive(Debug, Default)]
pub(super) struct Peers(BTreeMap<PeerId, String>);

impl Peers {
    /// What a peer is called.
    pub(super) fn name(&self, id: PeerId) -> &str {
        self.0.get(&id).map_or("a former peer", String::as_str)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (PeerId, &str)> {
        self.0.iter().map(|(id, name)| (*id, name.as_str()))
    }

    /// Takes all peers of `config` in.
    pub(super) fn join(
        &mut self,
        config: &Config,
        hub: &mut Hub,
        names: &mut Names,
    ) -> Result<(), GatewayError> {
        for peer in &config.peers {
            self.add(config, peer, hub, names)?;
        }
        Ok(())
    }

    /// Takes one peer in.
    pub(super) fn add(
        &mut self,
        config: &Config,
        peer: &Peer,
        hub: &mut Hub,
        names: &mut Names,
    ) -> Result<(), GatewayError> {
        let id = hub.add(membership(config, peer)?).map_err(|unfit| GatewayError::unfit(peer, &unfit))?;
        self.joined(id, config, peer, names);
        Ok(())
    }

    /// A peer was taken in.
    pub(super) fn joined(&mut self, id: PeerId, config: &Config, peer: &Peer, names: &mut Names) {
        self.0.insert(id, peer.name().to_owned());
        names.add(id, peer, &config.carrier);
    }

    fn remove(&mut self, id: PeerId, hub: &mut Hub, names: &mut Names) {
        self.0.remove(&id);
        names.remove(id);
        hub.remove(id);
    }
}

/// What the hub is told of a peer.
///
/// # Errors
/// Its pre-shared key cannot be read.
pub(super) fn membership(config: &Config, peer: &Peer) -> Result<Membership, ConfigError> {
    Ok(Membership {
        key: peer.public_key,
        preshared: peer.load_preshared()?,
        place: peer.place(&config.carrier),
        allowed: peer.allowed.clone(),
        weight: peer.weight,
        config: config.tunnel(peer),
    })
}

impl Gateway {
    /// Makes the peers those of `config`, which are `wanted`. Who stays keeps its session, unless its pre-shared key or the way to it differs:
    /// then it starts anew.
    pub(super) fn follow_peers(
        &mut self,
        now: Instant,
        config: &Config,
        wanted: Vec<Membership>,
    ) -> Result<(), GatewayError> {
        let Self { hub, peers, names, .. } = self;
        let by_key: HashMap<_, _> =
            wanted.iter().zip(&config.peers).map(|(wanted, peer)| (wanted.key, (wanted, peer))).collect();
        let way = |peer: &Peer| (peer.endpoint.clone(), peer.pin_endpoint);
        for old in &self.config.peers {
            let Some(id) = hub.find(&old.public_key) else { continue };
            let stays = by_key.get(&old.public_key).is_some_and(|(wanted, new)| {
                let session = hub.tunnel(id).map(Tunnel::session);
                session.is_some_and(|session| session.is_with(&wanted.preshared)) && way(old) == way(new)
            });
            if !stays {
                peers.remove(id, hub, names);
            }
        }
        // Networks may change hands.
        for wanted in &wanted {
            if let Some(id) = hub.find(&wanted.key) {
                hub.set_allowed(id, &[]).map_err(|unfit| GatewayError::Peers(unfit.to_string()))?;
            }
        }
        for (wanted, peer) in wanted.into_iter().zip(&config.peers) {
            let Some(id) = hub.find(&wanted.key) else {
                let id = hub.add(wanted).map_err(|unfit| GatewayError::unfit(peer, &unfit))?;
                peers.joined(id, config, peer, names);
                continue;
            };
            hub.set_allowed(id, &wanted.allowed).map_err(|unfit| GatewayError::unfit(peer, &unfit))?;
            hub.set_weight(id, wanted.weight);
            let differs = |tunnel: &Tunnel| {
                let known = tunnel.config();
                (known.link, known.keep_alive) != (wanted.config.link, wanted.config.keep_alive)
            };
            if hub.tunnel(id).is_some_and(differs)
                && let Some(tunnel) = hub.tunnel_mut(id)
            {
                tunnel.reconfigure(now, &wanted.config.link, wanted.config.keep_alive);
            }
            peers.0.insert(id, peer.name().to_owned());
        }
        hub.set_rate(now, config.share.rate);
        hub.set_memory(config.share.memory.0 as usize);
        Ok(())
    }
}
