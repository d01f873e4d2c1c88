/** Owns light and dark: as the system has it, or as somebody chose in this browser. */
const CHOICES = ["system", "light", "dark"] as const;
type Choice = (typeof CHOICES)[number];

const kept = (): Choice => {
  const choice = localStorage.getItem("theme");
  return CHOICES.find((each) => each === choice) ?? "system";
};

function show(choice: Choice): void {
  document.documentElement.style.colorScheme = choice === "system" ? "" : choice;
}

/** Its choice is in the rail, which has no script of its own. */
export function startTheme(): void {
  show(kept());
  const foot = document.querySelector("body > nav .foot");
  if (!foot) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "link theme";
  const name = () => {
    button.textContent = `Colours: ${kept()}`;
  };
  button.addEventListener("click", () => {
    const next = CHOICES[(CHOICES.indexOf(kept()) + 1) % CHOICES.length] ?? "system";
    localStorage.setItem("theme", next);
    show(next);
    name();
  });
  name();
  foot.append(button);
}
