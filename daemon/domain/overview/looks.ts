/** Owns the turns of what looks at rooms as a whole: it can be much, the event loop is one, and organizations take turns. */
import { LongWork } from "../../core/turn.ts";

export const looks = new LongWork();
