//! Reading the configuration again while the gateway runs (SIGHUP).

use std::io::{self, PipeReader};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::thread::{Builder, JoinHandle};

use base::Instant;
use base::config::ConfigError;
use link::DscpSet;
use tunnel::Membership;
use tunnel::key::PublicKey;

use super::{Gateway, GatewayError, Notice, membership};
use crate::config::{self, Config, Peer, WhenDown};

/// A configuration that is being read, on a thread of its own: with a thousand peers that takes longer than packets may wait.
#[derive(Debug)]
pub(super) struct Reading {
    thread: JoinHandle<Result<(Config, Vec<Membership>), ConfigError>>,
    /// Its other end belongs to the thread, and is closed when that is done.
    done: PipeReader,
}

impl Reading {
    /// Reads `file`, for a gateway with the public key `own`. Device and carrier stay those of `running` until a restart, for new peers too.
    fn start(file: PathBuf, own: PublicKey, running: &Config) -> io::Result<Self> {
        let (tun, carrier, paths) = (running.tun.clone(), running.carrier.clone(), running.paths.clone());
        let (done, open) = io::pipe()?;
        let thread = Builder::new().name("reload".to_owned()).spawn(move || {
            // Closed also by a panic.
            let _open = open;
            let config = Config::read(&file)?;
            config.check_identity(own)?;
            let running = Config { tun, carrier, paths, ..config.clone() };
            let members = running.peers.iter().map(|peer| membership(&running, peer));
            let members = members.collect::<Result<Vec<_>, _>>()?;
            Ok((config, members))
        })?;
        Ok(Self { thread, done })
    }

    /// What is readable once it is done.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }
}

impl Gateway {
    /// Begins to read the configuration again, if it was read from a file.
    pub(super) fn reload(&mut self, notify: &mut impl FnMut(Notice)) {
        let Some(file) = &self.config.file else { return };
        if self.reading.is_some() {
            // It may have read what has changed since.
            self.reads_again = true;
            return;
        }
        match Reading::start(file.clone(), self.worker.hub.public_key(), &self.config) {
            Ok(reading) => self.reading = Some(reading),
            Err(error) => notify(Notice::NotReloaded(error.to_string())),
        }
    }

    /// Takes over what can change while sessions last, and tells what cannot. A configuration that is wrong changes nothing.
    pub(super) fn finish_reload(&mut self, now: Instant, notify: &mut impl FnMut(Notice)) {
        let Some(reading) = self.reading.take() else { return };
        let panicked =
            |_| Err(ConfigError::about("the configuration", "the thread that reads it has panicked"));
        let read = reading.thread.join().unwrap_or_else(panicked);
        let taken = read.map_err(GatewayError::from).and_then(|(mut config, members)| {
            let mut needs_restart = fixed(&self.config, &config, self.worker.hub.public_key());
            let has_several = !self.worker.hub.worker().is_only();
            needs_restart.extend(config.share.rate.filter(|_| has_several).map(|_| "rate of [share]"));
            let routes = core::mem::take(&mut config.tun.routes);
            let tun = config::Tun { routes, when_down: config.tun.when_down, ..self.config.tun.clone() };
            let (carrier, paths) = (self.config.carrier.clone(), self.config.paths.clone());
            let config = Config { tun, carrier, paths, ..config };
            self.take_over(now, config, members)?;
            Ok(needs_restart)
        });
        notify(match taken {
            Ok(needs_restart) => Notice::Reloaded { needs_restart },
            Err(error) => Notice::NotReloaded(error.to_string()),
        });
        if core::mem::take(&mut self.reads_again) {
            self.reload(notify);
        }
    }

    fn take_over(
        &mut self,
        now: Instant,
        config: Config,
        members: Vec<Membership>,
    ) -> Result<(), GatewayError> {
        let former = self.change_routes(&config)?;
        let staying = match self.follow_peers(now, &config, members) {
            Ok(staying) => staying,
            Err(error) => {
                self.change_routes_back(former);
                return Err(error);
            }
        };
        if !is_elsewhere(&self.config, &config) {
            if self.config.status.as_ref().map(|status| &status.file)
                != config.status.as_ref().map(|status| &status.file)
            {
                self.remove_status();
            }
            self.config.status.clone_from(&config.status);
            self.telling.hurry(now);
        }
        // What needs a restart stays as it is, and is told again the next time.
        self.config.peers = config.peers;
        for peer in &mut self.config.peers {
            if let Some(old) = staying.get(&peer.public_key) {
                (peer.link, peer.pep) = (old.link.reconfigured(&peer.link), old.pep.clone());
            }
        }
        (self.config.share, self.config.tun) = (config.share, config.tun);
        self.follow_at = now;
        // Around those who are peers now.
        self.set_routes().map_or(Ok(()), |notice| Err(GatewayError::Peers(notice.to_string())))
    }
}

/// Whether the new status file lies where the daemon may not write: in another directory than the one that it has had so far.
fn is_elsewhere(old: &Config, new: &Config) -> bool {
    let directory = |config: &Config| config.status.as_ref().map(|status| status.directory().to_owned());
    new.status.is_some() && directory(old) != directory(new)
}

/// The keys that differ and are only read when the daemon starts.
fn fixed(old: &Config, new: &Config, own: PublicKey) -> Vec<&'static str> {
    let differs =
        |old: &dyn core::fmt::Debug, new: &dyn core::fmt::Debug| format!("{old:?}") != format!("{new:?}");
    let peers = new.peers.iter().filter_map(|new| {
        let old = old.peers.iter().find(|old| old.public_key == new.public_key)?;
        Some((old, new))
    });
    let peers: Vec<_> = peers.collect();
    let any = |differs: fn(&Peer, &Peer) -> bool| peers.iter().any(|(old, new)| differs(old, new));
    let is_first = |old: DscpSet, new: DscpSet| old.is_empty() && !new.is_empty();
    [
        ("user", old.user != new.user),
        ("workers", old.workers != new.workers),
        ("[tun]", differs(&without_routes(&old.tun), &without_routes(&new.tun))),
        ("[carrier]", old.carrier != new.carrier),
        ("[[path]]", old.paths != new.paths),
        // Each path has its own from the start.
        ("rate", !old.paths.is_empty() && any(|old, new| old.link.rate != new.link.rate)),
        // What the file says now is compared with the key that is in use, since another file may have the old one's name.
        ("[metrics]", old.metrics != new.metrics),
        ("[page]", old.page != new.page),
        ("[identity]", new.identity.load().is_ok_and(|key| key.public() != own)),
        ("protocol", any(|old, new| old.link.protocol != new.link.protocol)),
        ("overhead", any(|old, new| old.link.overhead != new.link.overhead)),
        ("[pep]", any(|old, new| old.pep != new.pep)),
        ("the directory of [status]", is_elsewhere(old, new)),
        ("clean", any(|old, new| old.link.clean != new.link.clean)),
        // Whether there is a queue of their own for them is decided at the start.
        ("once-dscp", peers.iter().any(|(old, new)| is_first(old.link.once_dscp, new.link.once_dscp))),
        (
            "interactive-dscp",
            peers.iter().any(|(old, new)| is_first(old.link.interactive_dscp, new.link.interactive_dscp)),
        ),
        ("sparse-flows", any(|old, new| old.link.sparse_flows != new.link.sparse_flows)),
    ]
    .into_iter()
    .filter_map(|(key, differs)| differs.then_some(key))
    .collect()
}

/// The device without what can change while it is there.
fn without_routes(tun: &config::Tun) -> config::Tun {
    config::Tun { routes: Vec::new(), when_down: WhenDown::default(), ..tun.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_restart_is_named() {
        let site = "[tun]\nname = \"sat0\"\n[carrier.udp]\nlisten = \"192.0.2.1:1\"\n[link]\nprotocol = \"plain\"\n\
                    once-dscp = []\ninteractive-dscp = []\n\
                    rate = \"1 Mbit/s\"\n[identity]\nprivate-key = \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n\
                    [[peer]]\npublic-key = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"\n";
        let old = Config::parse("site.toml", site).unwrap();
        let own = old.identity.load().unwrap().public();
        let changed = |from: &str, to: &str| {
            let new = Config::parse("site.toml", &site.replace(from, to)).unwrap();
            fixed(&old, &new, own).join(" ")
        };
        assert_eq!(changed("1 Mbit/s", "2 Mbit/s"), "");
        assert_eq!(
            changed("plain\"", "plain\"\nfillers = 7\nround-trip = \"1 s\"\ndatagram-age = \"none\""),
            ""
        );
        assert_eq!(changed("plain\"", "plain\"\nsparse-flows = false"), "sparse-flows");
        assert_eq!(
            changed("plain\"\nonce-dscp = []\ninteractive-dscp = []", "cotmll\"\nclean = true"),
            "protocol clean once-dscp interactive-dscp"
        );
        assert_eq!(changed("192.0.2.1:1", "192.0.2.1:2"), "[carrier]");
        // Peers and where they are are taken over.
        assert_eq!(
            changed("Tmo=\"", "Tmo=\"\nendpoint = \"hub.example.org:1\"\nallowed = [\"10.0.0.0/8\"]"),
            ""
        );
        assert_eq!(changed("AAA=", "AAE="), "[identity]");
        assert_eq!(changed("sat0", "sat1"), "[tun]");
        assert_eq!(changed("sat0\"", "sat0\"\nroutes = [\"10.0.0.0/8\"]\nwhen-down = \"pass\""), "");
        let with = |file: &str| {
            let status =
                if file.is_empty() { String::new() } else { format!("[status]\nfile = \"{file}\"\n") };
            Config::parse("site.toml", &format!("{site}{status}")).unwrap()
        };
        let moved = |from: &str, to: &str| fixed(&with(from), &with(to), own).join(" ");
        assert_eq!((moved("/run/a/x", "/run/a/y"), moved("/run/a/x", "")), Default::default());
        for (from, to) in [("/run/a/x", "/run/b/x"), ("", "/run/a/x"), ("x", "/run/a/x")] {
            assert_eq!(moved(from, to), "the directory of [status]");
        }
    }
}
