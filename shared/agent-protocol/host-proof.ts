/**
 * Owns how a host that comes back proves to an agent that it is the one which set it up. The first welcome leaves a secret in
 * the guest; each later one has to answer the challenge of its connection's hello. A guest that is restored as another, or as it was before,
 * gets another secret, from who has the one before.
 *
 * The port is part of the proof: who listens on another port cannot pass the host's answer on as its own.
 * The guest's check is guest-agent/host-trust.ts.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

/** A secret, and a challenge: hex of 32 random bytes. */
const TOKEN = /^[0-9a-f]{64}$/;

export function isToken(value: unknown): value is string {
  return typeof value === "string" && TOKEN.test(value);
}

/** Hex of HMAC-SHA256 with the secret over the port that was dialled and the challenge. */
export function hostProof(secret: string, port: number, challenge: string): string {
  return createHmac("sha256", Buffer.from(secret, "hex")).update(`roomd-host ${port} ${challenge}`).digest("hex");
}

/** Whether two texts are the same, in a time that does not tell how much of them is. */
export function sameText(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.byteLength === b.byteLength && timingSafeEqual(a, b);
}
