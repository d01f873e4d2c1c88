/** Texts for each kind of an agent's wait. */
import type { Wait } from "../../../shared/api/overview/overview.ts";

export const WAIT_WORDS: Record<Wait["type"], string> = {
  reply: "a reply",
  barrier: "the barrier",
  inbox: "messages",
  command: "a command",
};
