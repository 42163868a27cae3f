/tmp/wt/s1/target-faults/debug/deps/subtle-2ebc6c8460f25c38.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/subtle-2.6.1/src/lib.rs

/tmp/wt/s1/target-faults/debug/deps/libsubtle-2ebc6c8460f25c38.rlib: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/subtle-2.6.1/src/lib.rs

/tmp/wt/s1/target-faults/debug/deps/libsubtle-2ebc6c8460f25c38.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/subtle-2.6.1/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/subtle-2.6.1/src/lib.rs:
