//! System calls, and those that block while other events happen.

use base::Instant;

use super::{Run, returned, returns_at, seconds};
use crate::call::{Call, Errno, Expected, Operation};
use crate::event::Event;
use crate::stack::Answer;

/// A call that has not returned.
pub(crate) struct Pending {
    operation: Operation,
    expected: Expected,
    /// When it should return.
    returns: Instant,
    /// Bytes that it has written so far.
    written: usize,
}

impl Operation {
    /// The socket that it is for, unless it makes one.
    pub(crate) const fn descriptor(&self) -> Option<i32> {
        match *self {
            Self::Socket { .. } => None,
            Self::Bind { fd }
            | Self::Listen { fd, .. }
            | Self::Accept { fd, .. }
            | Self::Connect { fd }
            | Self::GetFlags { fd }
            | Self::SetFlags { fd, .. }
            | Self::SetOption { fd, .. }
            | Self::GetError { fd, .. }
            | Self::Write { fd, .. }
            | Self::Read { fd, .. }
            | Self::Shutdown { fd, .. }
            | Self::Close { fd } => Some(fd),
        }
    }
}

impl Run<'_> {
    /// Makes a call.
    pub(super) fn call(&mut self, event: &Event, call: &Call, from: Instant) -> Result<(), String> {
        if let Operation::SetFlags { fd, nonblocking } = call.operation {
            self.nonblocking.insert(fd, nonblocking);
        }
        if let Some(returns) = returns_at(call, event, from) {
            let pending = Pending { operation: call.operation, expected: call.expected, returns, written: 0 };
            self.pending = Some(pending);
            return self.poll_call();
        }
        let answer = self.stack.call(&call.operation)?;
        self.collect();
        let nonblocking = call.operation.descriptor().and_then(|fd| self.nonblocking.get(&fd).copied());
        let got = match (answer, call.operation) {
            (Answer::Value(value), Operation::GetFlags { fd }) => {
                Expected::Value(value | if self.nonblocking.get(&fd) == Some(&true) { NONBLOCK } else { 0 })
            }
            (Answer::Value(value), _) => Expected::Value(value),
            (Answer::Error(errno), _) => Expected::Error(errno),
            (Answer::Blocks, _) if nonblocking != Some(true) => {
                return Err("the call blocks; it needs a time when it returns (`0.1...0.2`), or a socket with O_NONBLOCK"
                    .to_owned());
            }
            (Answer::Blocks, Operation::Connect { .. }) => Expected::Error(Errno::Einprogress),
            (Answer::Blocks, _) => Expected::Error(Errno::Eagain),
        };
        self.check(call.expected, got)
    }

    fn check(&self, expected: Expected, got: Expected) -> Result<(), String> {
        if expected == got || expected == Expected::Any {
            return Ok(());
        }
        Err(format!(
            "another result\n  expected = {}\n  got      = {} at {}",
            returned(expected),
            returned(got),
            seconds(self.stack.now())
        ))
    }

    /// Asks a call that blocks whether it returns now.
    pub(super) fn poll_call(&mut self) -> Result<(), String> {
        let Some(mut pending) = self.pending.take() else { return Ok(()) };
        let now = self.stack.now();
        let left = match pending.operation {
            Operation::Write { fd, len } => Operation::Write { fd, len: len - pending.written },
            other => other,
        };
        let got = match (self.stack.call(&left)?, pending.operation) {
            (Answer::Blocks, _) => None,
            (Answer::Value(taken), Operation::Write { len, .. }) => {
                pending.written += usize::try_from(taken).unwrap_or(0);
                (pending.written >= len).then_some(Expected::Value(len as i64))
            }
            (Answer::Value(value), _) => Some(Expected::Value(value)),
            (Answer::Error(errno), _) => Some(Expected::Error(errno)),
        };
        self.collect();
        let Some(got) = got else {
            if now > pending.returns + self.tolerance {
                return Err(format!(
                    "the call still blocks at {}; it should return at {}",
                    seconds(now),
                    seconds(pending.returns)
                ));
            }
            self.pending = Some(pending);
            return Ok(());
        };
        if now < pending.returns.saturating_sub(self.tolerance) {
            return Err(format!(
                "the call returns at {}; expected at {}",
                seconds(now),
                seconds(pending.returns)
            ));
        }
        self.check(pending.expected, got)
    }

    /// A call that blocks returns before another is made, and before the end.
    pub(super) fn finish_call(&mut self) -> Result<(), String> {
        while let Some(pending) = &self.pending {
            let until = pending.returns + self.tolerance + super::GRAIN;
            self.pass(until)?;
        }
        Ok(())
    }
}

/// `O_NONBLOCK` of Linux.
const NONBLOCK: i64 = 0x800;
