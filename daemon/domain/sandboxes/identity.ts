/** The identity of a sandbox for its guest. It has no secrets, and only agent_id is chosen by the caller. */
import { createHash } from "node:crypto";
import type { SandboxRow } from "./table.ts";

const MAX_HOSTNAME_CHARACTERS = 63;
/** Resolvers parse these as an address (inet_aton): decimal, octal, hexadecimal. */
const ADDRESS = /^(\d+|0x[0-9a-f]*)$/;
const LETTERS = "agent-";

export function identityOf(row: SandboxRow, roomId: string) {
  return {
    hostname: hostnameOf(row.agent_id),
    memory_mib: row.memory_mib,
    machine_id: createHash("sha256").update(row.sandbox_id).digest("hex").slice(0, 32),
    env: {
      ...row.env,
      ROOMD_ROOM_ID: roomId,
      ROOMD_AGENT_ID: row.agent_id,
      ROOMD_SANDBOX_ID: row.sandbox_id,
      ...(row.fabric_attached ? { ROOMD_URL: "http://room.internal" } : {}),
    },
    egress: row.guest_net,
    room: row.fabric_attached,
  };
}

/** A label that no resolver parses as an address. */
export function hostnameOf(agentId: string): string {
  const label = agentId.replaceAll(/[^A-Za-z0-9-]/g, "-").toLowerCase();
  const named = ADDRESS.test(label) ? `${LETTERS}${label}` : label;
  return named.slice(0, MAX_HOSTNAME_CHARACTERS).replace(/-+$/, "");
}
