//! Where a name is: the system's resolver, which blocks, asked on a thread of its own.
//!
//! A thread lives as long as one question, so there is none while the address is known and in use. It starts with
//! the rights that its parent has left.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::Builder;

use crate::config::HostName;

/// Asks for addresses; readable once there is an answer.
#[derive(Debug)]
pub struct Resolver {
    answers: (Sender<Answered>, Receiver<Answered>),
    /// A byte for each answer that waits.
    bell: (PipeReader, Arc<PipeWriter>),
    asked: usize,
}

/// Which question was answered, and how.
pub type Answered = (u64, Answer);

/// The addresses of a name, with its port and in the system's order of preference, or why there are none.
pub type Answer = io::Result<Vec<SocketAddr>>;

/// Questions on their way at once, each with a thread.
const MOST_QUESTIONS: usize = 16;

impl Resolver {
    /// Without questions.
    ///
    /// # Errors
    /// There is no room for a pipe.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { answers: mpsc::channel(), bell: (reader, Arc::new(writer)), asked: 0 })
    }

    /// Whether one more may be asked.
    #[must_use]
    pub const fn has_room(&self) -> bool {
        self.asked < MOST_QUESTIONS
    }

    /// Asks for the addresses of `name`, as the question with this number.
    ///
    /// # Errors
    /// There is no room for a thread.
    pub fn ask(&mut self, number: u64, name: &HostName) -> io::Result<()> {
        let (host, port) = (name.name().to_owned(), name.port());
        self.ask_with(number, move || (host.as_str(), port).to_socket_addrs().map(Iterator::collect))
    }

    fn ask_with(&mut self, number: u64, resolve: impl FnOnce() -> Answer + Send + 'static) -> io::Result<()> {
        let (answers, bell) = (self.answers.0.clone(), Arc::clone(&self.bell.1));
        Builder::new().name("resolver".to_owned()).spawn(move || {
            let answer = panic::catch_unwind(panic::AssertUnwindSafe(resolve));
            let panicked = |_| Err(io::Error::other("the resolver's thread has panicked"));
            // Nobody is left to hear it once the gateway has ended.
            let _ = answers.send((number, answer.unwrap_or_else(panicked)));
            let _ = (&*bell).write(&[0]);
        })?;
        self.asked += 1;
        Ok(())
    }

    /// The next answer. It is to be called only while the descriptor is readable, and may wait otherwise.
    pub fn poll_answer(&mut self) -> Option<Answered> {
        let rung = (&self.bell.0).read(&mut [0]).is_ok_and(|bytes| bytes == 1);
        let answered = if rung { self.answers.1.try_recv().ok() } else { None };
        self.asked -= usize::from(answered.is_some());
        answered
    }
}

impl AsFd for Resolver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use base::Duration;

    use super::*;
    use crate::readiness::{Interest, wait};

    fn is_ready(resolver: &Resolver, millis: u64) -> bool {
        wait([Interest::read(resolver.as_fd())], Some(Duration::from_millis(millis))).unwrap()[0].read
    }

    #[test]
    fn a_resolver_is_readable_while_there_are_answers() {
        let (permit, permitted) = mpsc::channel();
        let address = SocketAddr::from(([192, 0, 2, 7], 7000));
        let mut resolver = Resolver::new().unwrap();
        let resolve = move || {
            permitted.recv().unwrap();
            Ok(vec![address])
        };
        resolver.ask_with(7, resolve).unwrap();
        assert!(!is_ready(&resolver, 10));
        permit.send(()).unwrap();
        assert!(is_ready(&resolver, 60_000));
        let (number, answer) = resolver.poll_answer().unwrap();
        assert_eq!((number, answer.unwrap()), (7, vec![address]));
        assert!(!is_ready(&resolver, 10));
    }

    #[test]
    fn a_failure_is_an_answer_too() {
        let mut resolver = Resolver::new().unwrap();
        for question in 0..40 {
            match question % 2 {
                0 => resolver.ask_with(question, || Err(io::ErrorKind::NotFound.into())).unwrap(),
                _ => resolver.ask_with(question, || panic!("on purpose")).unwrap(),
            }
            assert!(is_ready(&resolver, 60_000) && resolver.has_room());
            let (number, answer) = resolver.poll_answer().unwrap();
            assert!(number == question && answer.is_err());
        }
    }

    #[test]
    fn there_are_only_so_many_questions_at_once() {
        let mut resolver = Resolver::new().unwrap();
        let (permit, permitted) = mpsc::channel::<()>();
        let permitted = Arc::new(std::sync::Mutex::new(permitted));
        let mut asked = 0;
        while resolver.has_room() {
            let permitted = Arc::clone(&permitted);
            let resolve = move || {
                permitted.lock().unwrap().recv().unwrap();
                Ok(Vec::new())
            };
            resolver.ask_with(asked, resolve).unwrap();
            asked += 1;
        }
        assert_eq!(asked, MOST_QUESTIONS as u64);
        permit.send(()).unwrap();
        assert!(is_ready(&resolver, 60_000) && resolver.poll_answer().is_some() && resolver.has_room());
        (1..asked).for_each(|_| permit.send(()).unwrap());
    }
}
