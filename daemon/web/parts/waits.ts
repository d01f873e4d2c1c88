/** Owns what each kind of wait is for, in words. */
import type { Wait } from "../../../shared/api/overview.ts";

export const WAIT_WORDS: Record<Wait["type"], string> = {
  reply: "a reply",
  barrier: "the barrier",
  inbox: "messages",
  command: "a command",
};
