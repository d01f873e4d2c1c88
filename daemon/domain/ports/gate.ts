/** Exposed ports as the transports use them: lookup by label, admission, and connections. */
import { ServiceError } from "../../core/service-error.ts";
import type { OpenPort } from "./connections.ts";
import type { PortParts } from "./parts.ts";
import type { PortUrls } from "./record.ts";
import { findLabel } from "./store.ts";
import type { PortRow } from "./table.ts";

export type { PortRow } from "./table.ts";

export interface Gate {
  urls(): PortUrls;
  /** Whether a port of this host has the label. */
  has(label: string): boolean;
  /** Throws port_not_exposed. */
  find(label: string): PortRow;
  /** Throws missing_credentials, invalid_api_key; never for a public port. */
  admit(row: PortRow, token: string | null, ip: string | null): void;
  /** `first` is sent to the server immediately. Throws rate_limited, insufficient_capacity, port_not_listening, guest_unreachable. */
  open(row: PortRow, first: Uint8Array): Promise<OpenPort>;
}

export function makeGate({ database, tokens, connections, refusals, urls }: PortParts): Gate {
  return {
    urls,
    has: (label) => findLabel(database.queries, label) !== undefined,
    find: (label) => {
      const row = findLabel(database.queries, label);
      if (row) return row;
      throw new ServiceError("port_not_exposed", { detail: "No port is exposed under this address." });
    },
    admit: (row, token, ip) => {
      if (row.visibility === "public") return;
      const hint = "Send the port's own token as the header X-Port-Token, or once as ?port_token=.";
      if (token === null) throw new ServiceError("missing_credentials", { detail: "This port needs its token.", hint });
      if (!tokens.opens(token, row.label)) {
        refusals.note(row, ip);
        throw new ServiceError("invalid_api_key", { detail: "The token is not valid for this port.", hint });
      }
    },
    open: (row, first) => connections.open(row, first),
  };
}
