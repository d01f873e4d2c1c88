/**
 * The hybrid key exchange mlkem768x25519-sha256 (draft-ietf-sshm-mlkem-hybrid-kex): ML-KEM-768 (FIPS 203) and X25519 (RFC 7748)
 * side by side, so that a recording is safe unless both are broken. Pure functions of bytes; hybrid-exchange.ts puts them into ssh2.
 *
 *   client ──public key of ML-KEM ‖ of X25519──▶ server
 *   client ◀──ciphertext of ML-KEM ‖ public key of X25519── server
 *   K = SHA-256(shared secret of ML-KEM ‖ of X25519), as a string
 */
import { createHash, createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from "node:crypto";
import { ml_kem768 } from "@noble/post-quantum/ml-kem.js";

export const HYBRID_KEX = "mlkem768x25519-sha256";

const PUBLIC_KEY_BYTES = 1184;
const CIPHERTEXT_BYTES = 1088;
const X25519_BYTES = 32;
/** The DER prefix of an X25519 public key (RFC 8410, 4). */
const X25519_DER = Buffer.from("302a300506032b656e032100", "hex");

export interface KemReply {
  /** The server's message. */
  reply: Buffer;
  secret: Buffer;
}

/** The server's half. Throws if the client's message is malformed or one of its keys is invalid. */
export function answerHybrid(clientMessage: Buffer): KemReply {
  if (clientMessage.byteLength !== PUBLIC_KEY_BYTES + X25519_BYTES) throw new Error("a message of the wrong length");
  // It throws if a coefficient of the key is out of range (FIPS 203, 7.2).
  const { cipherText, sharedSecret } = ml_kem768.encapsulate(clientMessage.subarray(0, PUBLIC_KEY_BYTES));
  const own = generateKeyPairSync("x25519");
  const shared = sharedX25519(own.privateKey, clientMessage.subarray(PUBLIC_KEY_BYTES));
  return { reply: Buffer.concat([cipherText, rawOf(own.publicKey)]), secret: combined(sharedSecret, shared) };
}

export interface Offered {
  /** The client's message. */
  message: Buffer;
  /** Throws if the server's message is malformed or its key is invalid. */
  secretOf(reply: Buffer): Buffer;
}

/** The client's half. */
export function offerHybridKeys(): Offered {
  const { publicKey, secretKey } = ml_kem768.keygen();
  const own = generateKeyPairSync("x25519");
  return {
    message: Buffer.concat([publicKey, rawOf(own.publicKey)]),
    secretOf: (reply) => {
      if (reply.byteLength !== CIPHERTEXT_BYTES + X25519_BYTES) throw new Error("a message of the wrong length");
      const sharedSecret = ml_kem768.decapsulate(reply.subarray(0, CIPHERTEXT_BYTES), secretKey);
      return combined(sharedSecret, sharedX25519(own.privateKey, reply.subarray(CIPHERTEXT_BYTES)));
    },
  };
}

const combined = (one: Uint8Array, other: Uint8Array) => createHash("sha256").update(one).update(other).digest();

const rawOf = (key: KeyObject) => key.export({ type: "spki", format: "der" }).subarray(-X25519_BYTES);

/** Throws if the peer's key has a small order: the secret would be zero whatever ours is (RFC 8731, 3). */
function sharedX25519(privateKey: KeyObject, other: Uint8Array): Buffer {
  const publicKey = createPublicKey({ key: Buffer.concat([X25519_DER, other]), format: "der", type: "spki" });
  const shared = diffieHellman({ privateKey, publicKey });
  if (shared.every((byte) => byte === 0)) throw new Error("a public key of small order");
  return shared;
}

/** The first of C2SP's accumulated vectors; the tests compare the digest of a hundred. */
const VECTOR = {
  seed: "7f9c2ba4e88f827d616045507605853ed73b8093f6efbc88eb1a6eacfa66ef263cb1eea988004b93103cfb0aeefd2a686e01fa4a58e8a3639ca8a1e3f9ae57e2",
  message: "35b8cc873c23dc62b8d260169afa2f75ab916a58d974918835d25e6a435085b2",
  /** SHA-256 of public key, ciphertext and shared secret. */
  digest: "a2965de2b321ba77c17427e5f07061dd3c9d51b8d5a07ba54167514a3b93198b",
} as const;
/** Number of runs after which the code that connections wait for is compiled. */
const WARM_UPS = 8;

/** Throws if ML-KEM of this build fails the test vector, in either direction. Its first calls are slow, so no client waits for them. */
export function checkMlkem(): void {
  for (let each = 0; each < WARM_UPS; each++) {
    const { publicKey, secretKey } = ml_kem768.keygen(Buffer.from(VECTOR.seed, "hex"));
    const { cipherText, sharedSecret } = ml_kem768.encapsulate(publicKey, Buffer.from(VECTOR.message, "hex"));
    const opened = ml_kem768.decapsulate(cipherText, secretKey);
    const found = createHash("sha256").update(publicKey).update(cipherText).update(sharedSecret).digest("hex");
    if (found !== VECTOR.digest || !Buffer.from(opened).equals(sharedSecret)) {
      throw new Error("ML-KEM-768 fails its test vector");
    }
  }
}
