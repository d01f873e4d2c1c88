/** Conversion of a planned Dockerfile into steps for the guest that runs them. */
import { BUSYBOX } from "../../../../shared/agent-protocol/runtime.ts";
import { invalidRecipe } from "../recipe.ts";
import type { Step } from "../recipe-steps.ts";
import { type Beside, Context } from "./context.ts";
import type { PlannedStep } from "./plan.ts";

/**
 * For a tar on standard input: $0 is the destination, $1 the name of the only file in it, if it is one, and $2 its owner. As elsewhere, one
 * file becomes $0 itself, unless that is a directory.
 */
const COPY = `set -e
[ -z "$2" ] || { t=$(mktemp); chown "$2" "$t"; rm "$t"; }
case $0 in
  */) ;;
  *)
    if [ -n "$1" ] && [ ! -d "$0" ]; then
      mkdir -p "$(dirname "$0")"
      t=$(mktemp -d -p "$(dirname "$0")" .roomd-XXXXXX)
      tar -x -C "$t"
      mv -f "$t/$1" "$0"
      rmdir "$t"
      exit
    fi
    ;;
esac
mkdir -p "$0"
tar -x -C "$0"
`;

/** COPYs take from `beside`, the build context; null: no context. Throws validation_failed if it lacks a source. */
export function stepsOf(planned: readonly PlannedStep[], buildContext: Beside | null): Step[] {
  const context = buildContext && new Context(buildContext);
  return planned.map((step) => asStep(step, context));
}

function asStep(step: PlannedStep, context: Context | null): Step {
  const { title } = step;
  if (step.kind === "run") return step;
  if (step.kind === "directory") return { title, argv: [BUSYBOX, "mkdir", "-p", step.path], cwd: "/" };
  if (context === null) throw invalidRecipe([`${title}: the Dockerfile has no context`]);
  const { sources, to, chown, mode } = step;
  const [user = "", group = user] = chown?.split(":") ?? [];
  const { only, tar } = context.take(sources, { owner: chown === null ? null : { user, group }, mode });
  return { title, put: tar, argv: [BUSYBOX, "sh", "-c", COPY, to, only ?? "", chown ?? ""] };
}
