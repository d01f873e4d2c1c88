/** An exposed port as all users of its sandbox see it: without its token. */
import { type Static, Type } from "@sinclair/typebox";
import { nullable, oneOf, record, timestamp } from "./contract.ts";

export const VISIBILITIES = ["private", "public"] as const;
export type PortVisibility = (typeof VISIBILITIES)[number];

export const portNumber = Type.Integer({
  minimum: 1,
  maximum: 65_535,
  code: "port_out_of_range",
  description: "The port on which the server in the sandbox listens.",
  examples: [8000],
});

const count = (description: string) => Type.Integer({ minimum: 0, description });

const traffic = record("PortTraffic", {
  connections: count("Connections to the server: a call by HTTP is one."),
  open_connections: count("Of these, those that are open."),
  sent_bytes: count("What the server sent."),
  received_bytes: count("What it was sent."),
  since: timestamp,
});
export type PortTraffic = Static<typeof traffic>;

export const shownPort = record("ShownPort", {
  port: portNumber,
  visibility: oneOf(VISIBILITIES),
  url: Type.String({ description: "https://{label}.{ports.domain} where the operator has set one, else path_url." }),
  path_url: Type.String({ description: "Always works; what browsers may do with its pages is restricted." }),
  created_at: timestamp,
  expires_at: nullable(timestamp),
  traffic,
});
export type ShownPort = Static<typeof shownPort>;
