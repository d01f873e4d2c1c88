/** Options for a sandbox's idle action and its wake reasons. */
import { type Command, InvalidArgumentError } from "commander";
import { ON_IDLE, type OnIdle, WAKE_REASONS, type WakeReason } from "../../../../shared/api/sandboxes.ts";
import { choice } from "../../kit/command.ts";

export interface LifecycleOptions {
  onIdle?: OnIdle;
  wakeOn?: WakeReason[];
}

export function withLifecycle(command: Command): Command {
  return command
    .addOption(choice("--on-idle <what>", "action when it is idle (default: destroy)", ON_IDLE))
    .option(
      "--wake-on <what>",
      `events that resume it from standby or hibernation: ${WAKE_REASONS.join(", ")}; repeatable, or none (default: all)`,
      wakeReason,
    );
}

export function lifecycleFrom({ onIdle, wakeOn }: LifecycleOptions) {
  if (onIdle === undefined && wakeOn === undefined) return undefined;
  return { ...(onIdle && { on_idle: onIdle }), ...(wakeOn && { wake_on: wakeOn }) };
}

function wakeReason(text: string, before: WakeReason[] = []): WakeReason[] {
  if (text === "none") return [];
  const reason = WAKE_REASONS.find((each) => each === text);
  if (!reason) throw new InvalidArgumentError(`It must be one of ${WAKE_REASONS.join(", ")}, or none.`);
  return [...before, reason];
}
