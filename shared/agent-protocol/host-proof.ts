/**
 * Mutual authentication of a guest's agent and its host after the first welcome, which leaves a secret in the guest: the hello proves
 * it over the challenge that the agent has made, and each later welcome has to answer that challenge. A guest that is restored as another,
 * or as it was before, gets another secret, over a connection that has proven the previous one.
 *
 * The port is part of both proofs: a listener on another port cannot relay the host's answer as its own. The CID is part of the agent's,
 * since clones share a secret until they are welcomed. The two differ in their first word, so that neither end can be made to compute
 * the other's. The guest's check is guest-agent/host-auth.ts, the host's daemon/host/guest-link/connection.ts.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

/** Format of secrets and challenges: hex of 32 random bytes. */
const TOKEN = /^[0-9a-f]{64}$/;

export function isToken(value: unknown): value is string {
  return typeof value === "string" && TOKEN.test(value);
}

/** Hex of HMAC-SHA256 with the secret over the port that was dialled and the challenge. */
export function hostProof(secret: string, port: number, challenge: string): string {
  return createHmac("sha256", Buffer.from(secret, "hex")).update(`roomd-host ${port} ${challenge}`).digest("hex");
}

/** Hex of HMAC-SHA256 with the secret over the guest's CID, the port that it dialled and its own challenge. */
export function guestProof(secret: string, guestCid: number, port: number, challenge: string): string {
  const text = `roomd-guest ${guestCid} ${port} ${challenge}`;
  return createHmac("sha256", Buffer.from(secret, "hex")).update(text).digest("hex");
}

/** Constant-time comparison of two texts. */
export function sameText(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.byteLength === b.byteLength && timingSafeEqual(a, b);
}
