/** Strong validator of a file: its identity and each of its changes. */
import type { Facts } from "../../host/files/facts.ts";

export function etagOf(facts: Facts): string {
  const parts = `${facts.identity}:${facts.size_bytes}:${facts.version}`;
  return `"${new Bun.CryptoHasher("sha256").update(parts).digest("base64url").slice(0, 27)}"`;
}

/** Whether an If-Match or If-None-Match header names this file, or any. Weak validators never match. */
export function namesEtag(header: string, etag: string | null): boolean {
  if (etag === null) return false;
  return header.trim() === "*" || header.split(",").some((named) => named.trim() === etag);
}
