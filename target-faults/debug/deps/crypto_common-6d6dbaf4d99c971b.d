/tmp/wt/s1/target-faults/debug/deps/crypto_common-6d6dbaf4d99c971b.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/crypto-common-0.1.7/src/lib.rs

/tmp/wt/s1/target-faults/debug/deps/libcrypto_common-6d6dbaf4d99c971b.rlib: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/crypto-common-0.1.7/src/lib.rs

/tmp/wt/s1/target-faults/debug/deps/libcrypto_common-6d6dbaf4d99c971b.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/crypto-common-0.1.7/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/crypto-common-0.1.7/src/lib.rs:
