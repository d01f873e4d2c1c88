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
  open_connections: count("Connections that are open."),
  sent_bytes: count("Bytes sent by the server."),
  received_bytes: count("Bytes sent to the server."),
  since: timestamp,
});
export type PortTraffic = Static<typeof traffic>;

export const shownPort = record("ShownPort", {
  port: portNumber,
  visibility: oneOf(VISIBILITIES),
  url: Type.String({ description: "https://{label}.{ports.domain} if the operator has set a domain, else path_url." }),
  path_url: Type.String({ description: "Always works; its pages are restricted in browsers." }),
  created_at: timestamp,
  expires_at: nullable(timestamp),
  traffic,
});
export type ShownPort = Static<typeof shownPort>;
