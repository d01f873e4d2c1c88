/** Interface of exposed ports: servers in a sandbox that external clients reach by URL. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, page, record } from "./contract.ts";
import { sandboxPath } from "./sandboxes.ts";
import { portNumber as port, shownPort, VISIBILITIES } from "./shown-port.ts";

export const MAX_PORTS = 16;

/** Transports of a private port's token: a header, or once the query, which sets it as a cookie. */
export const PORT_TOKEN_HEADER = "x-port-token";
export const PORT_TOKEN_QUERY = "port_token";
export const PORT_TOKEN_COOKIE = "roomd_port_token";

/** Maximum of concurrently open client connections to one port, to all ports of a sandbox, and to all of an organization. */
export const MAX_PORT_CONNECTIONS = 64;
export const MAX_SANDBOX_CONNECTIONS = 128;
export const MAX_ORG_PORT_CONNECTIONS = 1024;
/** Idle timeout: an exchange without traffic for this long is closed; a WebSocket is pinged instead. */
export const PORT_IDLE_SECONDS = 15 * 60;
/** Longest wait of a call that exposes a port, for the port's server. */
export const MAX_LISTEN_WAIT_MS = 50_000;
/** Maximum bytes of one WebSocket message, in either direction. */
export const MAX_SOCKET_MESSAGE_BYTES = 16 * 1024 * 1024;

const exposedPort = record("ExposedPort", {
  ...shownPort.properties,
  token: nullable(
    Type.String({
      description: `Opens this port and nothing else: header X-Port-Token, or ${PORT_TOKEN_QUERY} in the query once, which makes it a cookie. null for a public port.`,
    }),
  ),
  listening: Type.Boolean({ description: "Whether a server listens on the port in the guest right now." }),
});
export type PortRecord = Static<typeof exposedPort>;

export const sandboxExposePort = operation({
  name: "sandbox_expose_port",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/ports",
  summary: "Expose a port of a sandbox",
  description:
    "Makes a server on the guest's loopback reachable by URL: HTTP, server-sent events, WebSockets, bodies of any size. The server need not listen yet. Exposing the same port again returns the same record, its expiry included; with a different visibility or label it is 409 already_exists. By another key it also makes that key its maker. The port is unexposed when its sandbox ends, and with its maker: no later than the key expires, and when the last key of its line is revoked. In standby it stays exposed and answers 502.",
  access: "ports:write",
  params: sandboxPath,
  query: NONE,
  body: fields({
    port,
    visibility: Type.Optional(
      oneOf(VISIBILITIES, { description: "private (the default): only with the port's own token." }),
    ),
    label: Type.Optional(
      Type.String({
        pattern: "^[a-z0-9]([a-z0-9-]{0,29}[a-z0-9])?$",
        description: "Prefix of the URL's label; unguessable characters follow.",
        examples: ["web"],
      }),
    ),
    expires_in_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 31_536_000,
        description: "The port is unexposed after this time; if absent, when its sandbox ends.",
      }),
    ),
    wait_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_LISTEN_WAIT_MS,
        code: "timeout_out_of_range",
        description:
          "How long to wait until a server listens on the port, if none does; 0 if absent. `listening` has the result.",
      }),
    ),
  }),
  output: exposedPort,
  outcomes: { created: 201, exists: 200 },
  location: "/v1/rooms/{room_id}/sandboxes/{sandbox}/ports/{port}",
  errors: [
    "room_not_found",
    "sandbox_not_found",
    "room_destroying",
    "invalid_state",
    "already_exists",
    "port_out_of_range",
    "timeout_out_of_range",
    "too_many_ports",
  ],
  onFullDisk: true,
  secretOutput: true,
  audit: "port.exposed",
  example: { body: { port: 8000, label: "web" } },
});

export const portList = operation({
  name: "port_list",
  extension: "ports",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/ports",
  summary: "List a sandbox's exposed ports",
  description: "With their tokens, which is why it needs the same scope as exposing one.",
  access: "ports:write",
  params: sandboxPath,
  query: NONE,
  body: null,
  output: page(exposedPort),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "sandbox_not_found"],
  audit: "port.listed",
});

export const sandboxUnexposePort = operation({
  name: "sandbox_unexpose_port",
  method: "DELETE",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/ports/{port}",
  summary: "Unexpose a port of a sandbox",
  description: "Its URLs are 404 from then on and are never reused. Open connections are closed.",
  access: "ports:write",
  params: fields({ ...sandboxPath.properties, port }),
  query: NONE,
  body: null,
  output: fields({ port, state: oneOf(["unexposed"]) }),
  outcomes: { unexposed: 200 },
  errors: ["room_not_found", "sandbox_not_found", "port_not_exposed", "port_out_of_range"],
  audit: "port.unexposed",
});
