//! The peers of a gateway: what the configuration says of each, given to the hub.

use std::collections::{BTreeMap, HashMap};

use base::Instant;
use base::config::ConfigError;
use tunnel::key::{PresharedKey, PublicKey};
use tunnel::{Membership, PeerId};

use super::names::Names;
use super::workers::Hubs;
use super::{Gateway, GatewayError};
use crate::config::{Config, Peer};

/// All peers, whichever worker's they are.
#[derive(Debug, Default)]
pub(super) struct Peers(BTreeMap<PeerId, Known>);

/// What is known of a peer besides its tunnel.
#[derive(Debug)]
struct Known {
    /// By which people know it.
    name: String,
    /// With which its session was begun.
    preshared: PresharedKey,
}

impl Peers {
    /// What a peer is called.
    pub(super) fn name(&self, id: PeerId) -> &str {
        self.0.get(&id).map_or("a former peer", |known| &known.name)
    }

    /// Takes all peers of `config` in.
    pub(super) fn join(
        &mut self,
        config: &Config,
        hubs: &mut Hubs<'_>,
        names: &mut Names,
    ) -> Result<(), GatewayError> {
        for peer in &config.peers {
            self.add(config, peer, membership(config, peer)?, hubs, names)?;
        }
        Ok(())
    }

    /// Takes one peer in.
    fn add(
        &mut self,
        config: &Config,
        peer: &Peer,
        membership: Membership,
        hubs: &mut Hubs<'_>,
        names: &mut Names,
    ) -> Result<(), GatewayError> {
        let preshared = membership.preshared.clone();
        let id = hubs.add(membership, peer.host_name().is_some());
        let id = id.map_err(|unfit| GatewayError::unfit(peer, &unfit))?;
        self.joined(id, config, peer, preshared, names);
        Ok(())
    }

    /// A peer was taken in.
    pub(super) fn joined(
        &mut self,
        id: PeerId,
        config: &Config,
        peer: &Peer,
        preshared: PresharedKey,
        names: &mut Names,
    ) {
        self.0.insert(id, Known { name: peer.name().to_owned(), preshared });
        names.add(id, peer, &config.carrier);
    }

    fn remove(&mut self, id: PeerId, hubs: &mut Hubs<'_>, names: &mut Names) {
        self.0.remove(&id);
        names.remove(id);
        hubs.remove(id);
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
        place: config.place(peer),
        allowed: peer.allowed.clone(),
        weight: peer.weight,
        config: config.tunnel(peer),
    })
}

impl Gateway {
    /// Makes the peers those of `config`, which are `wanted`. Who stays keeps its session, unless its pre-shared key or the way to it differs:
    /// then it starts anew. What they were before is returned of those who stay.
    pub(super) fn follow_peers(
        &mut self,
        now: Instant,
        config: &Config,
        wanted: Vec<Membership>,
    ) -> Result<HashMap<PublicKey, Peer>, GatewayError> {
        let mut hubs = Hubs { first: &mut self.worker.hub, others: &mut self.workers };
        let Self { peers, names, .. } = self;
        let followed = follow(now, (&self.config, config), wanted, peers, &mut hubs, names);
        // Whatever was done is done at all workers.
        self.workers.commit(now);
        followed
    }
}

/// Has the peers follow from the old configuration to the new one.
fn follow(
    now: Instant,
    (old, config): (&Config, &Config),
    wanted: Vec<Membership>,
    peers: &mut Peers,
    hubs: &mut Hubs<'_>,
    names: &mut Names,
) -> Result<HashMap<PublicKey, Peer>, GatewayError> {
    let by_key: HashMap<_, _> =
        wanted.iter().zip(&config.peers).map(|(wanted, peer)| (wanted.key, (wanted, peer))).collect();
    let way = |peer: &Peer| (peer.endpoint.clone(), peer.pin_endpoint);
    let mut staying = HashMap::new();
    for old in &old.peers {
        let Some(id) = hubs.find(&old.public_key) else { continue };
        let stays = by_key.get(&old.public_key).is_some_and(|(wanted, new)| {
            let is_with = peers.0.get(&id).is_some_and(|known| known.preshared == wanted.preshared);
            is_with && way(old) == way(new)
        });
        if stays {
            staying.insert(old.public_key, old.clone());
        } else {
            peers.remove(id, hubs, names);
        }
    }
    // Networks may change hands.
    for wanted in &wanted {
        if let Some(id) = hubs.find(&wanted.key) {
            hubs.set_allowed(id, &[]).map_err(|unfit| GatewayError::Peers(unfit.to_string()))?;
        }
    }
    for (wanted, peer) in wanted.into_iter().zip(&config.peers) {
        let Some(id) = hubs.find(&wanted.key) else {
            peers.add(config, peer, wanted, hubs, names)?;
            continue;
        };
        hubs.set_allowed(id, &wanted.allowed).map_err(|unfit| GatewayError::unfit(peer, &unfit))?;
        hubs.set_weight(id, wanted.weight);
        let differs =
            |old: &Peer| (old.link, old.keep_alive) != (wanted.config.link, wanted.config.keep_alive);
        if staying.get(&wanted.key).is_some_and(differs) {
            hubs.reconfigure(now, id, &wanted.config.link, wanted.config.keep_alive);
        }
        if let Some(known) = peers.0.get_mut(&id) {
            peer.name().clone_into(&mut known.name);
        }
    }
    hubs.first.set_rate(now, config.share.rate.filter(|_| hubs.others.is_empty()));
    hubs.set_memory(config.share.memory.0 as usize);
    Ok(staying)
}
