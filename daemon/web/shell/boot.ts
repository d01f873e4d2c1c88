/** Data embedded in the page: the signed-in user, and the service. The daemon writes it into the page (edge/web/pages/hub.tsx). */
import type { Boot } from "../../../shared/hub/boot.ts";

export const boot = JSON.parse(document.getElementById("boot")?.textContent ?? "null") as Boot;
