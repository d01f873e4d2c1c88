/** Device authorization (RFC 8628): applications without a browser show a code, and poll until a person has decided. */
import { LRUCache } from "lru-cache";
import type { Scope } from "../../../shared/api/contract.ts";
import { after, monotonicMs, now } from "../../core/clock.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { networkOf } from "../egress/addresses.ts";
import { readAudience, readScopes } from "./authorization-request.ts";
import type { Asker } from "./client-metadata.ts";
import type { Clients } from "./clients.ts";
import { Refusal } from "./refusal.ts";
import { hashOf, makeSecret, makeUserCode, readUserCode, sha256, shownUserCode } from "./secrets.ts";
import {
  countDevices,
  dropDevice,
  dropExpiredDevices,
  getDevice,
  getGrant,
  insertDevice,
  openDevice,
  undecidedDevices,
} from "./store.ts";
import { firstTokens, type Issued } from "./tokens.ts";

export const DEVICE_SECONDS = 600;
export const POLL_SECONDS = 5;
/** Maximum number of pending device authorizations, of all clients together. */
const MAX_DEVICES = 1000;

/** Shown to a person that has entered a code. */
export interface ShownDevice {
  client_name: string;
  scopes: readonly Scope[];
  /** IP address that the request comes from. */
  ip: string | null;
  created_at: string;
}

/** Frees one entry: among undecided devices, removes the oldest of the network that has the most. */
function dropCrowding(queries: Queries): void {
  const byNetwork = Map.groupBy(undecidedDevices(queries), ({ ip }) => networkOf(ip ?? ""));
  const [most] = [...byNetwork.values()].sort((a, b) => b.length - a.length);
  const [oldest] = most ?? [];
  if (!oldest) throw new Refusal("invalid_request", "Too many applications wait for their tokens. Try again later.");
  dropDevice(queries, oldest.device_sha256);
}

export class Devices {
  readonly #database: Database;
  readonly #clients: Clients;
  readonly #url: () => string;
  /** Last poll of each device; removed with the device. */
  readonly #asked = new LRUCache<string, number>({ max: MAX_DEVICES });

  constructor(database: Database, clients: Clients, url: () => string) {
    this.#database = database;
    this.#clients = clients;
    this.#url = url;
  }

  /** Throws invalid_client, invalid_scope, invalid_target, invalid_request. */
  async begin(request: {
    client_id: string;
    scope: string | undefined;
    resource: string | undefined;
    ip: string | null;
    asker: Asker;
  }) {
    const { client_id } = await this.#clients.find(request.client_id, request.asker);
    const scopes = [...readScopes(request.scope)];
    const audience = readAudience(request.resource, this.#url());
    const device_code = makeSecret("odc-");
    const user_code = makeUserCode();
    const created_at = now();
    await this.#database.commit((queries) => {
      dropExpiredDevices(queries, created_at);
      if (countDevices(queries) >= MAX_DEVICES) dropCrowding(queries);
      insertDevice(queries, {
        device_sha256: sha256(device_code),
        user_code,
        client_id,
        audience,
        scopes,
        ip: request.ip,
        created_at,
        expires_at: after(created_at, DEVICE_SECONDS),
        allowed: null,
        key_id: null,
      });
    });
    return { device_code, user_code: shownUserCode(user_code) };
  }

  /** The waiting device of an entered code; null: none. */
  async look(typed: string, asker: Asker): Promise<ShownDevice | null> {
    const device = openDevice(this.#database.queries, readUserCode(typed), now());
    if (!device) return null;
    const { name: client_name } = await this.#clients.find(device.client_id, asker);
    return { client_name, scopes: device.scopes, ip: device.ip, created_at: device.created_at };
  }

  /** Within a transaction. Throws authorization_pending, slow_down, access_denied, expired_token, invalid_grant. */
  tokens(queries: Queries, { client_id, device_code }: { client_id: string; device_code: string }): Issued {
    const hashed = hashOf("odc-", device_code);
    const device = hashed === null ? undefined : getDevice(queries, hashed);
    if (!device || device.client_id !== client_id) throw new Refusal("invalid_grant", "The device code is not valid.");
    if (device.expires_at <= now()) throw new Refusal("expired_token", "The code has expired. Request another.");
    if (device.allowed === null) throw this.#wait(device.device_sha256);
    this.#asked.delete(device.device_sha256);
    const grant = device.key_id === null ? undefined : getGrant(queries, device.key_id);
    if (!device.allowed || !grant) throw new Refusal("access_denied", "The user denied the request.");
    dropDevice(queries, device.device_sha256);
    return firstTokens(queries, grant);
  }

  #wait(device_sha256: string): Refusal {
    const nowMs = monotonicMs();
    const last = this.#asked.get(device_sha256) ?? Number.NEGATIVE_INFINITY;
    this.#asked.set(device_sha256, nowMs);
    // One second less than POLL_SECONDS: clocks and networks differ.
    return nowMs - last < (POLL_SECONDS - 1) * 1000
      ? new Refusal("slow_down", `Poll again after ${POLL_SECONDS} seconds.`)
      : new Refusal("authorization_pending", "The user has not decided yet.");
  }
}
