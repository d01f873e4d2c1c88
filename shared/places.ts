/** Paths of the pages of resources: the table from type to path, for the daemon and for the hub. */

export const PLACE_TYPES = [
  "room",
  "sandbox",
  "agent",
  "execution",
  "message",
  "barrier",
  "terminal",
  "recording",
  "snapshot",
  "checkpoint",
  "port",
  "audit",
  "request",
  "key",
  "org",
  "template",
  "template_build",
  "account",
  "member",
  "invitation",
  "session",
  "passkey",
  "identity",
  "application",
  "credit",
  "ssh_key",
  "ssh_access",
  "webhook",
] as const;
export type PlaceType = (typeof PLACE_TYPES)[number];

/** A resource, with its id and location. */
export interface Placed {
  type: PlaceType;
  id: string;
  room_id: string | null;
  agent_id: string | null;
}

const part = encodeURIComponent;

/** Without a room, the list of rooms is the closest page. */
const ofRoom = ({ room_id }: Placed, tab = ""): string =>
  room_id === null ? "/rooms" : `/rooms/${part(room_id)}${tab}`;

const ofAgent = (placed: Placed, tab = ""): string =>
  placed.room_id === null || placed.agent_id === null
    ? ofRoom(placed)
    : ofRoom(placed, `/agents/${part(placed.agent_id)}${tab}`);

const PATHS: Record<PlaceType, (placed: Placed) => string> = {
  room: (placed) => ofRoom(placed),
  sandbox: (placed) => ofAgent(placed),
  agent: (placed) => ofAgent(placed),
  execution: (placed) => ofAgent(placed, `/commands?exec=${part(placed.id)}`),
  message: (placed) => ofRoom(placed, `/messages?message=${part(placed.id)}`),
  barrier: (placed) => ofRoom(placed, `/waits?barrier=${part(placed.id)}`),
  terminal: (placed) => ofAgent(placed, `/terminal?terminal=${part(placed.id)}`),
  recording: (placed) => ofAgent(placed, `/screen?recording=${part(placed.id)}`),
  snapshot: (placed) => ofAgent(placed, "/record"),
  checkpoint: (placed) => ofRoom(placed, `/checkpoints?checkpoint=${part(placed.id)}`),
  port: (placed) => ofRoom(placed, `/ports?label=${part(placed.id)}`),
  audit: ({ id }) => `/audit?audit_id=${part(id)}`,
  request: ({ id }) => `/audit?request_id=${part(id)}`,
  key: () => "/account/keys",
  org: () => "/account",
  template: () => "/prompts",
  template_build: () => "/audit?event=template.",
  account: () => "/account",
  member: () => "/org/members",
  invitation: () => "/org/members",
  session: () => "/account/sessions",
  passkey: () => "/account/ways",
  identity: () => "/account/ways",
  application: () => "/account/applications",
  credit: () => "/usage",
  ssh_key: () => "/audit?event=key.ssh_",
  ssh_access: (placed) => ofAgent(placed),
  webhook: ({ id }) => `/webhooks?webhook=${part(id)}`,
};

/** Path of a resource's page, from the web's root on. */
export function pathOf(placed: Placed): string {
  return PATHS[placed.type](placed);
}

/** Id prefixes that determine the type, for pages that need nothing else. */
const SURE: readonly (readonly [prefix: string, type: PlaceType])[] = [
  ["evt_", "audit"],
  ["req_", "request"],
  ["kid_", "key"],
  ["org_", "org"],
];

/** The path if the id alone determines it; null if the service has to be queried. */
export function pathOfSure(id: string): string | null {
  const type = SURE.find(([prefix]) => id.startsWith(prefix))?.[1];
  return type === undefined ? null : pathOf({ type, id, room_id: null, agent_id: null });
}
