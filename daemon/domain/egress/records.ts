/**
 * Responses to SRV, TXT and MX queries for names that a sandbox may connect to. Leading labels that begin with an underscore name a service
 * or a policy of the name behind them (RFC 8552), so that they are not compared with the list. A record that leads to another name is left
 * out unless the list has that name too.
 */
import type { DnsRecord, EgressRecords } from "../../../shared/agent-protocol/messages.ts";
import type { Policy } from "./allowlist.ts";
import { canonicalName } from "./names.ts";

export const RECORD_TYPES: readonly DnsRecord["type"][] = ["SRV", "TXT", "MX"];

const MAX_RECORDS = 64;
/** Maximum length of a string of a TXT record (RFC 1035, 3.3). */
const MAX_STRING_BYTES = 255;
const MAX_STRINGS = 32;

/** The name that is compared with the list; "" if no label remains. */
export function nameBehindLabels(name: string): string {
  const labels = name.split(".");
  const first = labels.findIndex((label) => !label.startsWith("_"));
  return first === -1 ? "" : labels.slice(first).join(".");
}

/** The found records that the list allows. The DNS server is untrusted: its answer is bounded and its names are parsed again. */
export function allowedRecords(found: readonly DnsRecord[], policy: Policy): EgressRecords {
  const records = found.slice(0, MAX_RECORDS).flatMap((record) => allowedRecord(record, policy) ?? []);
  return { answer: "found", records };
}

function allowedRecord(record: DnsRecord, policy: Policy): DnsRecord | null {
  if (record.type === "TXT") {
    const texts = record.texts.slice(0, MAX_STRINGS).filter((text) => Buffer.byteLength(text) <= MAX_STRING_BYTES);
    return { type: "TXT", texts };
  }
  const target = canonicalName(record.target);
  const port = record.type === "SRV" ? record.port : null;
  return target !== null && policy.allowsName(target, port) ? { ...record, target } : null;
}
