/** Required and allowed fields of each action. */
import type { InputOf } from "../../../shared/api/contract.ts";
import type { ComputerAction, computer } from "../../../shared/api/screen.ts";
import type { RuleBreak } from "../../core/call/operation.ts";
import { chordsOf, chordsOfText, MAX_CHORDS } from "./keysyms.ts";

type Input = InputOf<typeof computer>;
type Field = keyof Pick<
  Input,
  "coordinate" | "start_coordinate" | "text" | "key" | "scroll_direction" | "scroll_amount" | "duration_ms" | "region"
>;

interface Rule {
  needs?: readonly Field[];
  takes?: readonly Field[];
}

const CLICK: Rule = { takes: ["coordinate", "key"] };

const RULES: Readonly<Record<ComputerAction, Rule>> = {
  screenshot: {},
  cursor_position: {},
  mouse_move: { needs: ["coordinate"] },
  left_click: CLICK,
  right_click: CLICK,
  middle_click: CLICK,
  double_click: CLICK,
  triple_click: CLICK,
  left_click_drag: { needs: ["coordinate"], takes: ["start_coordinate", "key"] },
  left_mouse_down: { takes: ["coordinate"] },
  left_mouse_up: { takes: ["coordinate"] },
  scroll: { needs: ["scroll_direction"], takes: ["coordinate", "scroll_amount", "key"] },
  key: { needs: ["text"] },
  hold_key: { needs: ["text", "duration_ms"] },
  type: { needs: ["text"] },
  wait: { needs: ["duration_ms"] },
  zoom: { needs: ["region"] },
};
const FIELDS = [...new Set(Object.values(RULES).flatMap(({ needs = [], takes = [] }) => [...needs, ...takes]))];

export function rules(input: Partial<Input>, bad: readonly RuleBreak[]): RuleBreak[] {
  const { action } = input;
  if (action === undefined || bad.some(({ field }) => field === "action")) return [];
  const { needs = [], takes = [] } = RULES[action];
  const broken: RuleBreak[] = [];
  const isBad = (field: string) => bad.some((each) => each.field.startsWith(field));
  for (const field of FIELDS) {
    if (isBad(field)) continue;
    if (input[field] === undefined) {
      if (needs.includes(field)) broken.push({ field, code: "required", message: `${action} needs ${field}.` });
    } else if (!needs.includes(field) && !takes.includes(field)) {
      broken.push({ field, code: "not_allowed", message: `${action} takes no ${field}.` });
    }
  }
  if (broken.length > 0) return broken;
  const { text, key, region } = input;
  const isType = action === "type";
  if (text !== undefined && !isBad("text")) broken.push(...(isType ? ofText(text) : ofKeys("text", text)));
  if (key !== undefined && !isBad("key")) broken.push(...ofKeys("key", key));
  const [left = 0, top = 0, right = 0, bottom = 0] = region ?? [];
  if (region && !isBad("region") && (right <= left || bottom <= top)) {
    broken.push({ field: "region", code: "out_of_range", message: "region ends before it begins." });
  }
  return broken;
}

function ofText(text: string): RuleBreak[] {
  const typed = chordsOfText(text);
  return "chords" in typed
    ? []
    : [{ field: "text", code: "pattern", message: `text has ${typed.bad}, which no key produces.` }];
}

function ofKeys(field: "text" | "key", names: string): RuleBreak[] {
  const read = chordsOf(names);
  if ("bad" in read) {
    const message = `${JSON.stringify(read.bad.slice(0, 64))} is not a key. Key names are those of X11, such as Return, ctrl+c or Page_Down; at most ${MAX_CHORDS} with spaces between.`;
    return [{ field, code: "pattern", message }];
  }
  if (field === "key" && read.chords.length > 1) {
    return [{ field, code: "pattern", message: "Join keys that are held together in key with +." }];
  }
  return [];
}
