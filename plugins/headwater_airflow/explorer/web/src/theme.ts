/** Airflow's colour mode: it keeps the choice under this name, and the page in its frame is of the same origin. */
const KEY = "theme";

function chosen(): string {
  try {
    return localStorage.getItem(KEY) ?? "system";
  } catch {
    return "system"; // storage may be forbidden
  }
}

/** Follow Airflow's choice, or the system's where it leaves that to the system, also while the page is open. */
export function followColorMode(): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const mode = chosen();
    const isDark = mode === "dark" || (mode !== "light" && dark.matches);
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
  };
  apply();
  dark.addEventListener("change", apply);
  addEventListener("storage", (event) => {
    if (event.key === KEY) apply();
  });
}
