/** The hub's routes: each path once, with the module that shows it. */

import type { Load } from "./lazy-page.tsx";
import type { PageProps } from "./page.ts";
import { addPath } from "./router.ts";

const page = (path: string, load: Load<PageProps>) => ({ match: addPath(path), load });

const home = () => import("../home/home.tsx");
const rooms = () => import("../rooms/rooms.tsx");
const room = () => import("../room/room.tsx");
const agent = () => import("../agent/agent.tsx");

export const PAGES = [
  page("/", home),
  page("/rooms", rooms),
  page("/rooms/:room_id", room),
  page("/rooms/:room_id/:tab", room),
  page("/audit", () => import("../audit/audit.tsx")),
  page("/usage", () => import("../usage/usage.tsx")),
  page("/hosts", () => import("../hosts/hosts.tsx")),
  page("/webhooks", () => import("../webhooks/webhooks.tsx")),
  page("/rooms/:room_id/agents/:agent_id", agent),
  page("/rooms/:room_id/agents/:agent_id/:tab", agent),
];
