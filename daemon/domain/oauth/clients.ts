/**
 * OAuth clients: registration and look-up of applications. All are public clients: none has a secret, and the name of an application is
 * untrusted. A person decides the grant, and sees the redirect's destination.
 */
import { newId } from "../../../shared/ids.ts";
import { after, now } from "../../core/clock.ts";
import type { Database } from "../../db/transact.ts";
import type { Asker, ClientMetadata } from "./client-metadata.ts";
import { type Client, readMetadata } from "./metadata.ts";
import { Refusal } from "./refusal.ts";
import { countClients, dropUnusedClients, getClient, insertClient } from "./store.ts";

/** Above this, no application is registered until unused ones have been removed. */
const MAX_CLIENTS = 10_000;
const UNUSED_SECONDS = 90 * 86_400;
/** At the limit, clients without a grant are removed if they are older than this. */
const CROWDED_SECONDS = 86_400;

/** Our own command line; it has no browser, and uses a device code. */
export const COMMAND_LINE: Client = { client_id: "roomd", name: "roomd on the command line", redirect_uris: [] };

export interface Registration {
  client_id: string;
  client_id_issued_at: number;
  client_name: string;
  redirect_uris: string[];
}

export class Clients {
  readonly #database: Database;
  readonly #documents: ClientMetadata | null;

  /** `documents` null: client metadata documents are not supported. */
  constructor(database: Database, documents: ClientMetadata | null) {
    this.#database = database;
    this.#documents = documents;
  }

  /** Throws invalid_client, rate_limited. */
  async find(clientId: string, asker: Asker): Promise<Client> {
    if (clientId === COMMAND_LINE.client_id) return COMMAND_LINE;
    if (this.#documents && clientId.startsWith("https://")) return await this.#documents.read(clientId, asker);
    const row = getClient(this.#database.queries, clientId);
    if (!row) throw new Refusal("invalid_client", "The application is not registered. It has to register again.");
    return row;
  }

  /** Throws invalid_client_metadata, invalid_redirect_uri. */
  async register(metadata: Record<string, unknown>): Promise<Registration> {
    const { name, redirect_uris } = readMetadata(metadata);
    const created_at = now();
    const client_id = newId("oap");
    await this.#database.commit((queries) => {
      if (countClients(queries) >= MAX_CLIENTS) {
        dropUnusedClients(queries, after(created_at, -CROWDED_SECONDS));
        if (countClients(queries) >= MAX_CLIENTS) throw full();
      }
      insertClient(queries, { client_id, name, redirect_uris, created_at });
    });
    return {
      client_id,
      client_id_issued_at: Math.floor(Date.parse(created_at) / 1000),
      client_name: name,
      redirect_uris,
    };
  }
}

const full = () =>
  new Refusal("invalid_client_metadata", "Too many applications have registered. Contact the operator.");

export const unusedBefore = (at: string): string => after(at, -UNUSED_SECONDS);
