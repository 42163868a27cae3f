//! Asking gateways for their status, all at once and for a limited time.
//!
//! Anybody may listen as a gateway does. An answer counts if it comes from root or from the user who asks. Root, whose system it is,
//! takes answers from everybody, since a gateway that was started as another user listens as that one, and is told whose each is.
//! Who only pretends is passed over where that can be seen: a device has one gateway, so where root or the asker listens for it nobody
//! else's counts, and a device that does not exist has none.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time;

use base::{Duration, Instant};
use socket2::{Domain, SockAddr, Socket, Type};

use super::{Place, ROOT, Status, own_user, owner};
use crate::clock::Clock;
use crate::netlink;

/// What became of a question.
#[derive(Debug)]
pub struct Asked {
    /// The gateway's device.
    pub device: String,
    /// Its status; `answered_by_user` in it tells who answered.
    pub status: Result<Status, AskError>,
}

/// Why a gateway's status cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nothing came from a gateway of root's or of the asker's within a few seconds, or not all of it.
    #[error("it did not answer")]
    Silent,
    /// Nothing came within a few seconds, or not all of it, from what may be a gateway of this user's, who is neither
    /// root nor the asker.
    #[error("user {0}, who listens for it, did not answer")]
    SilentUser(u32),
    /// This user, who is neither root nor the one who asks, listens for it.
    #[error("user {0}, who is neither root nor you, listens for it")]
    Foreign(u32),
    /// The gateway does not answer this user.
    #[error("it answers root and its own user only")]
    Refused,
    /// What it says is no status.
    #[error("its answer cannot be read: {0}")]
    Garbled(serde_json::Error),
    /// What the kernel says.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Somebody who listens, and may have taken the question already.
struct Listener<'a> {
    place: &'a Place,
    /// With who listens; `None` while the queue in front of it is full.
    reached: Option<(UnixStream, libc::uid_t)>,
}

/// Asks at all of `places`, in a few seconds at most, however many do not answer.
#[must_use]
pub fn ask(places: &[Place]) -> Vec<Asked> {
    let clock = Clock::start();
    let mut failed = Vec::new();
    let mut listeners = Vec::new();
    for place in places {
        match Listener::reach(place) {
            Ok(listener) => listeners.push(listener),
            // It has ended since it was listed.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && places.len() > 1 => {}
            Err(error) => failed.push(Asked { device: place.device().to_owned(), status: Err(error.into()) }),
        }
    }
    let asked = std::thread::scope(|scope| {
        let clock = &clock;
        let asking: Vec<_> = sift(listeners)
            .into_iter()
            .map(|listener| (listener.place, scope.spawn(move || listener.listen(clock))))
            .collect();
        let told = asking.into_iter().map(|(place, thread)| {
            let panicked = |_| Err(io::Error::other("the asking thread has panicked").into());
            Asked { device: place.device().to_owned(), status: thread.join().unwrap_or_else(panicked) }
        });
        told.collect::<Vec<_>>()
    });
    failed.into_iter().chain(asked).collect()
}

/// Passes over those who cannot be gateways.
fn sift(listeners: Vec<Listener<'_>>) -> Vec<Listener<'_>> {
    let trusted: BTreeSet<String> =
        listeners.iter().filter(|it| it.is_trusted()).map(|it| it.place.device().to_owned()).collect();
    let (mut seen, mut full) = (BTreeSet::new(), 0);
    listeners
        .into_iter()
        .filter(|it| {
            let device = it.place.device();
            match &it.reached {
                _ if it.is_trusted() => true,
                // A user who listens twice for a device has one to show.
                Some((_, user)) => {
                    !trusted.contains(device)
                        && netlink::exists(device)
                        && seen.insert((device.to_owned(), *user))
                }
                None => {
                    full += 1;
                    full <= MOST_FULL && netlink::exists(device)
                }
            }
        })
        .collect()
}

impl<'a> Listener<'a> {
    /// Asks at a place, without waiting for room in its queue.
    fn reach(place: &'a Place) -> io::Result<Self> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        let reached = match socket.connect(&address(place)?) {
            Ok(()) => Some(who_listens(socket)?),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => return Err(error),
        };
        Ok(Self { place, reached })
    }

    fn is_trusted(&self) -> bool {
        self.reached.as_ref().is_some_and(|(_, user)| is_trusted(*user))
    }

    /// Waits for the answer.
    fn listen(self, clock: &Clock) -> Result<Status, AskError> {
        let (stream, user) = match self.reached {
            Some(reached) => reached,
            None => {
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                // Holds for connecting.
                socket.set_write_timeout(Some(left(clock).ok_or(AskError::Silent)?))?;
                socket.connect(&address(self.place)?).map_err(|error| match error.kind() {
                    io::ErrorKind::WouldBlock => AskError::Silent,
                    _ => error.into(),
                })?;
                who_listens(socket)?
            }
        };
        if own_user() != ROOT && !is_trusted(user) {
            return Err(AskError::Foreign(user));
        }
        let answer = read(stream, clock)?.ok_or(if is_trusted(user) {
            AskError::Silent
        } else {
            AskError::SilentUser(user)
        })?;
        if answer.is_empty() {
            return Err(AskError::Refused);
        }
        let mut status: Status = serde_json::from_slice(&answer).map_err(AskError::Garbled)?;
        if let Some(status) = status.as_object_mut() {
            status.insert("answered_by_user".to_owned(), user.into());
        }
        Ok(status)
    }
}

/// Reads to the end; `None` if that does not come in time, or is too far away.
fn read(mut stream: UnixStream, clock: &Clock) -> io::Result<Option<Vec<u8>>> {
    stream.set_nonblocking(false)?;
    let (mut answer, mut part) = (Vec::new(), vec![0; 1 << 16]);
    while answer.len() <= LONGEST
        && let Some(left) = left(clock)
    {
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(Some(answer)),
            Ok(len) => answer.extend_from_slice(&part[..len]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn left(clock: &Clock) -> Option<time::Duration> {
    let left = (Instant::ZERO + PATIENCE).saturating_since(clock.now());
    (left > Duration::ZERO).then(|| time::Duration::from_nanos(left.as_nanos()))
}

fn address(place: &Place) -> io::Result<SockAddr> {
    SockAddr::unix(format!("\0{}", place.name()))
}

fn who_listens(socket: Socket) -> io::Result<(UnixStream, libc::uid_t)> {
    let stream = UnixStream::from(OwnedFd::from(socket));
    let user = owner(&stream).ok_or_else(|| io::Error::other("who listens is not known"))?;
    Ok((stream, user))
}

fn is_trusted(user: libc::uid_t) -> bool {
    user == ROOT || user == own_user()
}

/// How long all answers together may take: a gateway's queue is emptied in a quarter of a second, and a status of thousands of peers is made
/// and sent in less than one.
const PATIENCE: Duration = Duration::from_secs(3);
/// Bytes of an answer at most; one has 1300 to 2000 for each peer.
const LONGEST: usize = 64 << 20;
/// Places with full queues at which somebody waits.
const MOST_FULL: usize = 64;
