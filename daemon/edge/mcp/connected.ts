/** Records that an MCP client has connected: once for each key and client while the service runs. A client's name is its own claim. */
import { CLIENT_INFO_META_KEY, isInitializeRequest } from "@modelcontextprotocol/server";
import { LRUCache } from "lru-cache";
import type { KeyId } from "../../../shared/ids.ts";
import type { Caller } from "../../core/call/operation.ts";
import { now } from "../../core/clock.ts";
import type { AuditEntry } from "../../domain/audit/index.ts";

const MAX_KEYS = 4096;
/** Clients per key; further ones are not recorded. */
const MAX_CLIENTS = 16;
const MAX_NAME = 64;

export class Connected {
  readonly #record: (entry: AuditEntry) => void;
  readonly #known = new LRUCache<KeyId, Set<string>>({ max: MAX_KEYS });

  constructor(record: (entry: AuditEntry) => void) {
    this.#record = record;
  }

  hear(caller: Caller, message: Record<string, unknown>, place: { ip: string | null; request_id: string }): void {
    const client = clientOf(message);
    if (client === null) return;
    const { key_id } = caller;
    const known = this.#known.peek(key_id) ?? new Set();
    if (known.has(client) || known.size === MAX_CLIENTS) return;
    this.#known.set(key_id, known.add(client));
    this.#record({
      event: "mcp.connected",
      outcome: "success",
      at: now(),
      org_id: caller.org_id || null,
      actor: { type: caller.kind ?? "key", id: key_id, name: caller.name },
      source: "mcp",
      ...place,
      details: { client },
    });
  }
}

/** Name and version that a client sends first, or with every message. */
function clientOf(message: Record<string, unknown>): string | null {
  const params = Object(message.params);
  const { name, version } = Object(
    isInitializeRequest(message) ? params.clientInfo : Object(params._meta)[CLIENT_INFO_META_KEY],
  );
  if (typeof name !== "string" || name === "") return null;
  return `${name.slice(0, MAX_NAME)} ${typeof version === "string" ? version.slice(0, MAX_NAME) : ""}`.trim();
}
